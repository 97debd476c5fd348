#include "cpu_driver/event.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cpu_driver/handle.h"

CUresult cpu_event_create(struct cpu_device *device, unsigned flags, CUevent *ret) {
    const unsigned known_flags =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    if ((flags & ~known_flags) != 0 || ((flags & CU_EVENT_INTERPROCESS) != 0 && is_timed))
        return CUDA_ERROR_INVALID_VALUE;
    struct cpu_event *event = calloc(1, sizeof *event);
    if (event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct cpu_event){.device = device, .flags = flags, .references = 1};
    CUevent handle = cpu_handle_create(CPU_HANDLE_EVENT, event);
    if (handle == NULL) {
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    cpu.counters.events_live++;
    *ret = handle;
    return CUDA_SUCCESS;
}

void cpu_event_unref(struct cpu_event *event) {
    if (--event->references == 0) free(event);
}

void cpu_event_destroy(CUevent handle) {
    struct cpu_event *event = cpu_handle_find(CPU_HANDLE_EVENT, handle);
    cpu_handle_drop(handle);
    cpu.counters.events_live--;
    cpu_event_unref(event);
}

struct cpu_event *cpu_event_find(const struct cpu_device *device, CUevent handle) {
    struct cpu_event *event = cpu_handle_find(CPU_HANDLE_EVENT, handle);
    return event != NULL && event->device == device ? event : NULL;
}

void cpu_event_pass(struct cpu_event *event, struct cpu_point point) {
    /* if it was recorded again since, this point has no meaning any more */
    if (event->point.slot == point.slot && event->point.number == point.number)
        event->time_ns = clock_ns();
}

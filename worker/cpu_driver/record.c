#include "cpu_driver/record.h"

#include <string.h>

#include "cpu_driver/hazard.h"

CUresult cpu_event_record(
    struct cpu_event *event, struct cpu_stream *stream, struct cpu_fault fault) {
    struct cpu_operation *operation = cpu_operation_create(CPU_OPERATION_RECORD, fault);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->event = event;
    event->references++;
    event->point = cpu_stream_enqueue(stream, operation);
    memcpy(event->known, stream->known, sizeof event->known);
    event->known[event->point.slot] = event->point.number;
    return CUDA_SUCCESS;
}

CUresult cpu_event_query(const struct cpu_event *event) {
    if (cpu_point_is_done(event->point)) return CUDA_SUCCESS;
    cpu_point_hurry(event->point);
    return CUDA_ERROR_NOT_READY;
}

CUresult cpu_event_synchronize(const struct cpu_event *event) {
    return cpu_point_wait(event->point, event->device);
}

CUresult cpu_event_elapsed(
    const struct cpu_event *start, const struct cpu_event *end, float *ret_ms) {
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || start->point.number == 0 ||
        end->point.number == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cpu_point_is_done(start->point) || !cpu_point_is_done(end->point))
        return CUDA_ERROR_NOT_READY;
    *ret_ms = (float)((double)end->time_ns - (double)start->time_ns) * 1e-6f;
    return CUDA_SUCCESS;
}

CUresult cpu_stream_wait_event(
    struct cpu_stream *stream, const struct cpu_event *event, struct cpu_fault fault) {
    struct cpu_operation *operation = cpu_operation_create(CPU_OPERATION_WAIT, fault);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->wait = event->point;
    cpu_stream_enqueue(stream, operation);
    cpu_hazard_learn(stream->known, event->known);
    return CUDA_SUCCESS;
}

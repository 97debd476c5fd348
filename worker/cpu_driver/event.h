/** Events: each names the point of a stream at which it was last recorded. */
#ifndef CPU_DRIVER_EVENT_H
#define CPU_DRIVER_EVENT_H

#include "cpu_driver/state.h"

/** Operation `number` of the stream in `slot`; number 0 is before all operations. */
struct cpu_point {
    unsigned slot;
    uint64_t number;
};

struct cpu_event {
    struct cpu_device *device;
    unsigned flags;
    struct cpu_point point;          /* number 0: never recorded */
    uint64_t known[CPU_STREAMS_MAX]; /* what its stream knew at that point; see hazard.h */
    uint64_t time_ns;                /* when the stream passed it */
    unsigned references;             /* held by its handle and by recordings under way */
};

CUresult cpu_event_create(struct cpu_device *device, unsigned flags, CUevent *ret);

/** Drops the handle; a recording under way keeps the event. */
void cpu_event_destroy(CUevent handle);

/** The event of this device, or NULL. */
struct cpu_event *cpu_event_find(const struct cpu_device *device, CUevent handle);

/** The stream's thread has reached the recording `point`. */
void cpu_event_pass(struct cpu_event *event, struct cpu_point point);

void cpu_event_unref(struct cpu_event *event);

#endif

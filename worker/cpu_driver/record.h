/** Recording events on streams, and streams that wait for events. */
#ifndef CPU_DRIVER_RECORD_H
#define CPU_DRIVER_RECORD_H

#include "cpu_driver/stream.h"

CUresult cpu_event_record(
    struct cpu_event *event, struct cpu_stream *stream, struct cpu_fault fault);
CUresult cpu_event_query(const struct cpu_event *event);
CUresult cpu_event_synchronize(const struct cpu_event *event);
CUresult cpu_event_elapsed(
    const struct cpu_event *start, const struct cpu_event *end, float *ret_ms);

CUresult cpu_stream_wait_event(
    struct cpu_stream *stream, const struct cpu_event *event, struct cpu_fault fault);

#endif

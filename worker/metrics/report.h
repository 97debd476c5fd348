/**
 * The worker's telemetry for one interval: what happened since the last report, and the gauges now.
 * Plain values.
 */
#ifndef METRICS_REPORT_H
#define METRICS_REPORT_H

#include "metrics/counters.h"

/* X(gauge) */
#define GAUGE_LIST(X)                                                                              \
    X(jobs_in_flight)  /* taken, and not finished */                                               \
    X(bytes_in_flight) /* of their messages */                                                     \
    X(jobs_ready)      /* waiting for a lane */                                                    \
    X(jobs_long)       /* long ones that have begun, and hold memory between their chunks */       \
    X(jobs_starved)    /* waiting for device memory */                                             \
    X(jobs_retrying)   /* failed, and waiting to be tried again */                                 \
    X(device_pool_live_bytes)                                                                      \
    X(device_pool_cached_bytes)                                                                    \
    X(pinned_pool_live_bytes)                                                                      \
    X(pinned_pool_cached_bytes)                                                                    \
    X(statics_cached_bytes)                                                                        \
    X(residents)                                                                                   \
    X(resident_bytes)                                                                              \
    X(streams_cached)                                                                              \
    X(fences_cached)                                                                               \
    X(timing_events_cached)

struct gauges {
#define X(gauge) uint64_t gauge;
    GAUGE_LIST(X)
#undef X
};

/** The message that has held up the commit of its partition longest. */
struct oldest_unfinished {
    const char *topic; /* NULL: nothing is unfinished */
    int32_t partition;
    int64_t offset;
    uint64_t age_ns; /* since it is the lowest unfinished one */
};

/** The sender of the telemetry. The strings outlive every message. */
struct identity {
    const char *host;
    const char *device; /* such as "NVIDIA H200" */
    uint32_t device_index;
    const char *uuid; /* of the device */
    const char *version;
};

struct report {
    uint64_t sequence; /* from 1; a gap means that a message was lost */
    uint64_t unix_ms, interval_ns, uptime_ns;
    struct totals totals;            /* since the previous report */
    struct gauges gauges;            /* now */
    struct oldest_unfinished oldest; /* now */
};

#endif

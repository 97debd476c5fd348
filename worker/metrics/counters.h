/**
 * The worker's counters, in one list. Any thread may add. Each of the first 64 threads has a padded
 * block of its own, so that counting a job shares no cache line. A reading sums the blocks.
 *
 * All counters start from zero. Sums are never reset: to get the sum of an interval, keep a reading
 * and subtract it from a later one, so that no increment is lost. Maxima cannot be subtracted:
 * counters_take_maxima() exchanges each for zero, so that a value counts in exactly one interval.
 * It has only one caller, which owns the intervals.
 *
 * Units: those of the names. Lifetime: counters_create() to counters_destroy(). Threads: any. Each
 * counter of a reading is exact, and never smaller than in an earlier reading. Two counters of one
 * reading may be of slightly different times.
 */
#ifndef METRICS_COUNTERS_H
#define METRICS_COUNTERS_H

#include <stdint.h>

#include "base/error.h"

/** The maps of a telemetry message (schemas/telemetry.schema.json). X(section) */
#define SECTION_LIST(X)                                                                            \
    X(jobs)    /* sums over the jobs' own telemetry */                                             \
    X(timed)   /* timed jobs that ended well */                                                    \
    X(batches) /* sums over batches of what was really moved */                                    \
    X(intake)  /* what happened to messages before they became jobs */                             \
    X(engine)  /* all that really happened: batches, and work that belongs to no job */

/* X(section, counter, SUM or MAX) */
#define COUNTER_LIST(X)                                                                            \
    X(jobs, h2d_bytes, SUM)                                                                        \
    X(jobs, d2h_bytes, SUM)                                                                        \
    X(jobs, param_bytes, SUM)                                                                      \
    X(jobs, kernel_launches, SUM)                                                                  \
    X(jobs, static_hits, SUM)                                                                      \
    X(jobs, static_misses, SUM)                                                                    \
    X(jobs, static_bytes_saved, SUM)                                                               \
    X(jobs, queue_ns, SUM)                                                                         \
    X(jobs, decode_ns, SUM)                                                                        \
    X(jobs, prepare_ns, SUM)                                                                       \
    X(jobs, stage_ns, SUM)                                                                         \
    X(jobs, enqueue_ns, SUM)                                                                       \
    X(jobs, wait_ns, SUM)                                                                          \
    X(jobs, wall_ns, SUM)                                                                          \
    X(timed, jobs, SUM)                                                                            \
    X(timed, wall_ns, SUM)                                                                         \
    X(timed, enqueue_ns, SUM)                                                                      \
    X(timed, wait_ns, SUM)                                                                         \
    X(timed, device_ns, SUM)                                                                       \
    X(timed, wall_ns_max, MAX)                                                                     \
    X(timed, enqueue_ns_max, MAX)                                                                  \
    X(timed, wait_ns_max, MAX)                                                                     \
    X(timed, device_ns_max, MAX)                                                                   \
    X(batches, count, SUM)                                                                         \
    X(batches, jobs, SUM)                                                                          \
    X(batches, copies, SUM)                                                                        \
    X(batches, h2d_bytes, SUM)                                                                     \
    X(batches, d2h_bytes, SUM)                                                                     \
    X(batches, launches, SUM)                                                                      \
    X(batches, coalesced_launches, SUM)                                                            \
    X(batches, sync_points, SUM)                                                                   \
    X(intake, messages_expired, SUM) /* deleted by retention before they were read */              \
    X(engine, host_to_device_bytes, SUM)                                                           \
    X(engine, device_to_host_bytes, SUM)                                                           \
    X(engine, param_upload_bytes, SUM)                                                             \
    X(engine, upload_operations, SUM)                                                              \
    X(engine, readback_operations, SUM)                                                            \
    X(engine, sync_points, SUM) /* waits for the device, one for each batch */                     \
    X(engine, kernel_launches, SUM)                                                                \
    X(engine, coalesced_launches, SUM)                                                             \
    /* taken from the device pool: for batches, for residents */                                   \
    X(engine, transient_allocation_bytes, SUM)                                                     \
    X(engine, resident_allocation_bytes, SUM)                                                      \
    X(engine, device_pool_hits, SUM)                                                               \
    X(engine, device_pool_misses, SUM)                                                             \
    X(engine, pinned_pool_hits, SUM)                                                               \
    X(engine, pinned_pool_misses, SUM)                                                             \
    X(engine, static_hits, SUM)                                                                    \
    X(engine, static_misses, SUM)                                                                  \
    X(engine, static_evictions, SUM)                                                               \
    X(engine, static_bytes_saved, SUM)                                                             \
    X(engine, module_hits, SUM)                                                                    \
    X(engine, module_compilations, SUM)                                                            \
    X(engine, module_evictions, SUM)

enum section {
#define X(section) SECTION_##section,
    SECTION_LIST(X)
#undef X
        SECTION_COUNT
};

enum counter {
#define X(section, counter, kind) COUNTER_##section##_##counter,
    COUNTER_LIST(X)
#undef X
        COUNTER_COUNT
};

struct counter_info {
    enum section section;
    const char *name;
    bool is_max;
};

extern const struct counter_info counter_infos[COUNTER_COUNT];
extern const char *const section_names[SECTION_COUNT];

/** Plain values: a reading, or the difference of two. */
struct totals {
    uint64_t of[COUNTER_COUNT];
    uint64_t outcomes[ERR_COUNT]; /* messages by outcome */
};

struct counters;

/** NULL when memory is short. */
struct counters *counters_create(void);
void counters_destroy(struct counters *counters); /* NULL is fine */

void counters_add(struct counters *counters, enum counter counter, uint64_t value);
void counters_raise(struct counters *counters, enum counter counter, uint64_t value);
void counters_add_outcome(struct counters *counters, enum err outcome);

/** All sums since the start; maxima are zero. */
void counters_read(const struct counters *counters, struct totals *ret);

/** Fills in the maxima since the last call. */
void counters_take_maxima(struct counters *counters, struct totals *ret);

/** The difference of two readings; the maxima are those of `now`. */
struct totals totals_since(const struct totals *now, const struct totals *before);

#endif

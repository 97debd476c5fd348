/**
 * What the worker counts, in one list. Any thread adds; every thread has a padded block of its own
 * (as long as there are no more than 64), so that counting shares no cache line on the way of a
 * job. A reading sums the blocks.
 *
 * Starting from zero. Sums are never set back: who wants what came since some moment keeps the
 * reading of that moment and subtracts it, so that no increment falls between two of them. Maxima
 * cannot be subtracted: counters_take_maxima() exchanges each for zero, so that a value is in
 * exactly one interval; it has one caller, who owns the intervals.
 *
 * Units: those of the names. Lifetime: counters_create() to counters_destroy(). Threads: any. Each
 * counter of a reading is exact, and no smaller than in the reading before; two counters of one
 * reading need not be of the same instant.
 */
#ifndef METRICS_COUNTERS_H
#define METRICS_COUNTERS_H

#include <stdint.h>

#include "base/error.h"

/** The maps of a telemetry message (schemas/telemetry.schema.json). X(section) */
#define SECTION_LIST(X)                                                                            \
    X(jobs)    /* sums over the jobs of what each one's telemetry says */                          \
    X(timed)   /* timed jobs that ended well */                                                    \
    X(batches) /* sums over distinct batches of what really moved */                               \
    X(intake)  /* what became of messages before they were jobs */                                 \
    X(engine)  /* all that really happened: the batches, and work that no job owns */

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
    X(engine, sync_points, SUM) /* waits for the device, whole batches each */                     \
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

/** Plain values: a reading, or what came between two. */
struct totals {
    uint64_t of[COUNTER_COUNT];
    uint64_t outcomes[ERR_COUNT]; /* messages by what became of them */
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

/** What came between two readings; the maxima are those of `now`. */
struct totals totals_since(const struct totals *now, const struct totals *before);

#endif

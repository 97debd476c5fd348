/**
 * The worker's counters, in one list. Any thread may add. As many as 63 threads at a time have a
 * padded block each, so that counting a job shares no cache line. A reading sums the blocks.
 *
 * Zeroed memory has counted nothing. If it is shared (board.h), the counts outlive the process.
 * Sums are never reset: to get the sum of an interval, keep a reading and subtract it from a later
 * one, so that no increment is lost. Maxima cannot be subtracted: counters_take_maxima() exchanges
 * each for zero, so that a value counts in exactly one interval. It has only one caller, which owns
 * the intervals.
 *
 * Units: those of the names. Lifetime: that of the memory. Threads: any, of other processes too.
 * Each counter of a reading is exact, and never smaller than in an earlier reading. Two counters of
 * one reading may be of slightly different times.
 */
#ifndef METRICS_COUNTERS_H
#define METRICS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

/** The maps of a telemetry message (schemas/telemetry.schema.json). X(section) */
#define SECTION_LIST(X)                                                                            \
    X(jobs)    /* sums over the jobs' own telemetry */                                             \
    X(timed)   /* timed jobs that ended well */                                                    \
    X(batches) /* sums over batches of what was really moved */                                    \
    X(intake)  /* what happened to messages before they became jobs */                             \
    X(engine)  /* all that really happened: batches, and work that belongs to no job */            \
    X(kinds)   /* what happened in each kind of batch; not in telemetry */                         \
    X(group)   /* what the group did; not in telemetry */                                          \
    X(traces)  /* what became of spans; not in telemetry */

/* X(section, counter, SUM or MAX) */
#define COUNTER_LIST(X)                                                                            \
    X(jobs, h2d_bytes, SUM)                                                                        \
    X(jobs, d2h_bytes, SUM)                                                                        \
    X(jobs, param_bytes, SUM)                                                                      \
    X(jobs, kernel_launches, SUM)                                                                  \
    X(jobs, instances, SUM) /* of arrays */                                                        \
    X(jobs, slices, SUM)    /* of arrays: a batch each */                                          \
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
    X(engine, module_evictions, SUM)                                                               \
    /* of a job alone in its batch; of several, one by one; of several at once */                  \
    X(kinds, launches_alone, SUM)                                                                  \
    X(kinds, launches_batched, SUM)                                                                \
    X(kinds, launches_coalesced, SUM)                                                              \
    X(kinds, sync_points_alone, SUM)                                                               \
    X(kinds, sync_points_batched, SUM)                                                             \
    X(kinds, sync_points_coalesced, SUM)                                                           \
    X(kinds, graph_launches, SUM) /* of graphs, each with many kernels */                          \
    X(kinds, graphs_refused, SUM) /* by the driver */                                              \
    X(group, rebalances, SUM)                                                                      \
    X(traces, spans_exported, SUM)                                                                 \
    X(traces, spans_dropped, SUM) /* there was no room, or the collector did not take them */

/* X(symbol, bounds): what is counted by size: times of jobs in nanoseconds, and jobs of batches.
 * A job that did not come to a stage is not counted there. */
#define HISTOGRAM_LIST(X)                                                                          \
    X(queue, TIME) /* ready, waiting for a lane */                                                 \
    X(decode, TIME)                                                                                \
    X(prepare, TIME)                                                                               \
    X(device, TIME)  /* from its launch to its batch's fence */                                    \
    X(publish, TIME) /* from its outputs on the host to its acknowledged answer */                 \
    X(total, TIME)   /* from its arrival to that */                                                \
    X(batch_jobs, JOBS)

enum section {
#define X(section) SECTION_##section,
    SECTION_LIST(X)
#undef X
        SECTION_COUNT,
    SECTION_TOLD = SECTION_kinds /* telemetry has those before it */
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

enum histogram {
#define X(symbol, bounds) HISTOGRAM_##symbol,
    HISTOGRAM_LIST(X)
#undef X
        HISTOGRAM_COUNT
};
enum { HISTOGRAM_BUCKETS = 20 };

struct histogram_info {
    const char *name;
    size_t bound_count; /* < HISTOGRAM_BUCKETS: what is above the last one has a bucket, too */
    const uint64_t *bounds;
};

extern const struct histogram_info histogram_infos[HISTOGRAM_COUNT];

struct histogram_reading {
    uint64_t
        buckets[HISTOGRAM_BUCKETS]; /* each for itself: up to its bound, above the one before */
    uint64_t sum;
};

/** Plain values: a reading, or the difference of two. */
struct totals {
    uint64_t of[COUNTER_COUNT];
    uint64_t outcomes[ERR_COUNT]; /* messages by outcome */
};

enum { COUNTERS_BLOCKS = 64, COUNTERS_LINE = 64 };

/* A block's neighbours are other threads': two lines apart, for processors that fetch pairs. */
struct counters_block {
    _Alignas(2 * COUNTERS_LINE) atomic_uint_fast64_t of[COUNTER_COUNT];
    atomic_uint_fast64_t outcomes[ERR_COUNT];
    atomic_uint_fast64_t buckets[HISTOGRAM_COUNT][HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t sums[HISTOGRAM_COUNT];
};

/** Zeroed memory, which processes may share; only counters.c reads it. */
struct counters {
    struct counters_block blocks[COUNTERS_BLOCKS];
};

void counters_add(struct counters *counters, enum counter counter, uint64_t value);
void counters_raise(struct counters *counters, enum counter counter, uint64_t value);
void counters_add_outcome(struct counters *counters, enum err outcome);

/** A value of 0 is none, and not counted. */
void counters_observe(struct counters *counters, enum histogram histogram, uint64_t value);

/** All sums since the start; maxima are zero. */
void counters_read(const struct counters *counters, struct totals *ret);

void counters_read_histogram(
    const struct counters *counters, enum histogram histogram, struct histogram_reading *ret);

/** Fills in the maxima since the last call. */
void counters_take_maxima(struct counters *counters, struct totals *ret);

/** The difference of two readings; the maxima are those of `now`. */
struct totals totals_since(const struct totals *now, const struct totals *before);

#endif

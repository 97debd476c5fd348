/**
 * A lane: a thread with one CUDA stream that takes what is ready, runs it as a batch, and hands
 * every outcome on.
 *
 * Lifetime: lanes_start() to lanes_stop(), which lets the queue run empty first. Threads: the
 * callbacks come from the lanes' threads.
 */
#ifndef EXECUTE_LANE_H
#define EXECUTE_LANE_H

#include "base/queue.h"
#include "execute/batch.h"

struct lanes_options {
    const struct device *device;
    uint32_t count;
    uint64_t slab_bytes; /* device memory, and pinned memory each way, that a lane keeps */
    uint32_t batch_jobs_max;
    struct queue *ready; /* of struct prepared; the lanes own what they pop */
    /** The job is over; the callee owns `prepared`. Outputs are valid during the call. */
    void (*on_done)(void *context, struct prepared *prepared, const struct outcome *outcome);
    /**
     * The GPU is lost to this process, and the lane stops. The jobs that it was running have no
     * outcome: whose fault it was is not known. The callee owns them.
     */
    void (*on_lost)(void *context, struct prepared **jobs, size_t count, const struct error *err);
    void *context;
};

struct lanes;

/** Starts all lanes; their streams and slabs are made here, so that a shortage shows at start. */
MUST_CHECK enum err lanes_start(
    const struct lanes_options *options, struct lanes **ret, struct error *err);

/** Closes the ready queue, lets the lanes finish what is in it, and ends them. NULL is fine. */
void lanes_stop(struct lanes *lanes);

#endif

/**
 * Key order in the executor. With `ordering: key` one job of a key runs at a time, else
 * limits.jobs_per_key. Private to pipeline/.
 *
 * Jobs that wait for others of their key count as in flight by their bytes alone, up to
 * ASIDE_MAX of them: so a key whose jobs are slow takes no places from others. A worker
 * that stops, or loses the partition, hands them back.
 *
 * A job leaves its key queue when its answer is in the publisher's queue, so that the answers of a
 * key stand in the order of its jobs. After a failure of the run nobody passes any more.
 *
 * Threads: as each function says.
 */
#ifndef PIPELINE_ORDERING_H
#define PIPELINE_ORDERING_H

#include "key_order/key_order.h"
#include "pipeline/stages.h"

/** key_order_finish() comes before prepare_finish(), key_order_destroy() once no stage has a job.
 */
MUST_CHECK enum err ordering_start(
    struct stages *stages, struct key_order **ret, struct error *err);

/**
 * True: the caller sends the job on. Else it is owned here, and goes on when those before it in its
 * key queue have left, or was rejected. In key order, the intake thread alone.
 */
MUST_CHECK bool ordering_enter(struct stages *stages, struct job *job);

/** How many jobs wait and take no place from others. Any thread. */
uint64_t ordering_count_aside(const struct stages *stages);

/** Hands back those that wait: of a partition that is not ours any more, or with NULL all. Intake
 * thread. */
void ordering_hand_back(struct stages *stages, const char *topic, int32_t partition);

#endif

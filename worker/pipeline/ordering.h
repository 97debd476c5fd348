/**
 * Key order in the executor. With `ordering: key` one job of a key runs at a time, otherwise
 * limits.jobs_per_key. Private to pipeline/.
 *
 * Up to ASIDE_MAX jobs that wait for others of their key count as in flight by their bytes alone.
 * So a key with slow jobs takes no places from other keys. A worker that stops, or loses the
 * partition, hands them back.
 *
 * A job leaves its key queue when its answer is in the publisher's queue, so that the answers of a
 * key stand in the order of its jobs. After a failure of the run no job passes any more.
 *
 * Threads: as each function says.
 */
#ifndef PIPELINE_ORDERING_H
#define PIPELINE_ORDERING_H

#include "key_order/key_order.h"
#include "pipeline/stages.h"

/** Call key_order_finish() before prepare_finish(), and key_order_destroy() when no stage has a
 * job.
 */
MUST_CHECK enum err ordering_start(
    struct stages *stages, struct key_order **ret, struct error *err);

/**
 * True: the caller sends the job on. False: the job is owned here; it waits until those before it
 * in its key queue have left, or was rejected. With `ordering: key` only the intake thread calls
 * this.
 */
MUST_CHECK bool ordering_enter(struct stages *stages, struct job *job);

/** How many waiting jobs take no place from others. Any thread. */
uint64_t ordering_count_aside(const struct stages *stages);

/** Hands back those that wait: of a partition that is not ours any more, or with NULL all. Intake
 * thread. */
void ordering_hand_back(struct stages *stages, const char *topic, int32_t partition);

#endif

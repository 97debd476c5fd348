/**
 * The keys' shares in the executor: the gate, and a thread that sends jobs on when their turn has
 * come, so that neither a lane nor the publisher plans and prepares what it has just let through.
 * With `ordering: key` one job of a key runs at a time, else limits.jobs_per_key. Private to
 * executor/.
 *
 * Jobs that wait here count as in flight by their bytes alone, up to ASIDE_MAX of them: so a
 * key whose jobs are slow takes no places from others. A worker that stops, or loses the partition,
 * hands them back.
 *
 * A job's turn ends when its answer is in the publisher's queue, so that the answers of a key stand
 * in the order of its jobs. After a failure of the run nobody's turn comes any more.
 *
 * Lifetime: turns_start() to turns_destroy(). Threads: any.
 */
#ifndef EXECUTOR_TURNS_H
#define EXECUTOR_TURNS_H

#include "executor/stages.h"
#include "gate/gate.h"

/* As many as stand in the windows of four partitions (broker/offsets.h). */

MUST_CHECK enum err turns_start(struct stages *stages, struct turns **ret, struct error *err);

/** Ends the thread: from here on jobs are only dropped. Before prepare_finish(). */
void turns_finish(struct turns *turns);

/** Once no stage has a job any more. */
void turns_destroy(struct turns *turns);

/**
 * True where it is the job's turn: the caller sends it on. Else it is owned here, and goes on when
 * its turn comes, or was rejected. In key order, the intake thread alone.
 */
MUST_CHECK bool turns_enter(struct stages *stages, struct job *job);

/** How many jobs wait and take no place from others. */
uint64_t turns_count_aside(struct turns *turns);

/** Hands back those that wait: of a partition that is not ours any more, or with NULL all. Returns
 * how many. Intake thread. */
size_t turns_hand_back(struct turns *turns, const char *topic, int32_t partition);

/** The job that stood in `line` is over: the next one's turn has come. */
void turns_leave(struct turns *turns, struct gate_line *line);

/** The same, but the next one is the caller's; NULL where there is none. */
MUST_CHECK struct job *turns_take_next(struct turns *turns, struct gate_line *line);

#endif

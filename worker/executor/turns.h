/**
 * Key order in the executor: the gate, and a thread that sends jobs on when their turn has come, so
 * that neither a lane nor the publisher plans and prepares what it has just let through. Private to
 * executor/.
 *
 * A job's turn ends when its answer is in the publisher's queue, so that the answers of a key stand
 * in the order of its jobs. After a failure of the run nobody's turn comes any more.
 *
 * Lifetime: turns_start() to turns_destroy(). Threads: any. With `ordering: none` there is no
 * struct turns: NULL is fine everywhere, and every job passes at once.
 */
#ifndef EXECUTOR_TURNS_H
#define EXECUTOR_TURNS_H

#include "executor/stages.h"
#include "gate/gate.h"

MUST_CHECK enum err turns_start(struct stages *stages, struct turns **ret, struct error *err);

/** Ends the thread: from here on jobs are only dropped. Before prepare_finish(). */
void turns_finish(struct turns *turns);

/** Once no stage has a job any more. */
void turns_destroy(struct turns *turns);

/**
 * True where it is the job's turn: the caller sends it on. Else it is owned here, and goes on when
 * its turn comes, or was rejected. Intake thread only.
 */
MUST_CHECK bool turns_enter(struct stages *stages, struct job *job);

/** The job that stood in `line` is over: the next one's turn has come. */
void turns_leave(struct turns *turns, struct gate_line *line);

/** The same, but the next one is the caller's; NULL where there is none. */
MUST_CHECK struct job *turns_take_next(struct turns *turns, struct gate_line *line);

#endif

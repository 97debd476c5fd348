/**
 * The key gate: jobs of one key run one after the other, in the order of their partition; jobs of
 * different keys do not wait for each other.
 *
 * A line is the jobs of one topic, partition and key. Its first job passes at once, each other one
 * when the job before it has left. A job without a key passes at once, unless it uses residents:
 * for those, no key is a key like any other.
 *
 * Lifetime: jobs in a line are owned by the gate until they pass; a line lives while a job of it
 * has not left. Memory: a line for each key with jobs in flight. Threads: any.
 */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "decode/job.h"

struct gate;

MUST_CHECK enum err gate_create(struct gate **ret, struct error *err);

/** Every job has left. NULL is fine. */
void gate_destroy(struct gate *gate);

/**
 * The job's turn: *passes tells whether it has come. If so the job is still the caller's, else it
 * is the gate's until gate_leave() returns it. ERR_NO_MEMORY: as if it had never come.
 */
MUST_CHECK enum err gate_enter(struct gate *gate, struct job *job, bool *passes, struct error *err);

/**
 * A job of this line is finished, or dropped. Returns the next one, whose turn has come; NULL if
 * there is none, and the line has ended. `line` is the job's `line`, read while the job was there.
 */
MUST_CHECK struct job *gate_leave(struct gate *gate, struct gate_line *line);

/** How many jobs wait for their turn. */
size_t gate_waiting_count(struct gate *gate);

#endif

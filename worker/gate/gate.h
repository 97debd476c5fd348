/**
 * The key gate: of the jobs of one key, `width` at most have passed and not left; the others wait
 * in the order in which they came. With a width of 1 they run one after the other. Jobs of
 * different keys do not wait for each other.
 *
 * A line is the jobs of one topic, partition and key. Its first ones pass at once, each other one
 * when a job before it has left. A job without a key passes at once, unless it uses residents: for
 * those, no key is a key like any other.
 *
 * Lifetime: jobs in a line are owned by the gate until they pass or are taken out; a line lives
 * while a job of it has passed and not left. Memory: a line for each key with jobs in flight, and a
 * copy of the key. Threads: any.
 */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "decode/job.h"

struct gate;

MUST_CHECK enum err gate_create(size_t width, struct gate **ret, struct error *err);

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

/**
 * Takes out the jobs that wait in lines of that partition, or with NULL in all: linked by
 * `next_in_line`, in the order of each line, and in no line any more.
 */
MUST_CHECK struct job *gate_take_waiting(struct gate *gate, const char *topic, int32_t partition);

/** How many jobs wait for their turn. */
size_t gate_waiting_count(struct gate *gate);

#endif

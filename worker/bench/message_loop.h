/**
 * What the message loop does with a message: finds what its kernel needs, and encodes a result with
 * the same keys as the worker's. It knows one kind of job, that of bench_job_add(), and has no
 * limits, headers or clocks, so it shows what messages themselves cost. gpu_baseline.h runs it.
 *
 * Units: bytes. Lifetime: what is read points into the message. Threads: pure functions.
 */
#ifndef BENCH_MESSAGE_LOOP_H
#define BENCH_MESSAGE_LOOP_H

#include "base/slice.h"

struct message_loop_job {
    struct slice id, x, y;
};

/**
 * Looks at each key and value of `message`. False: it is not one whole job z = x + y over buffers
 * of `buffer_bytes`.
 */
bool message_loop_read(struct slice message, uint64_t buffer_bytes, struct message_loop_job *ret);

/** Room for a result beside its id and its output. */
enum { MESSAGE_LOOP_RESULT_BYTES = 1024 };

/**
 * Encodes the result of the job with this number, which stands for what the worker counts and
 * measures. Returns its size; 0: the room is too small.
 */
size_t message_loop_write(
    const struct message_loop_job *job, struct slice z, uint64_t number, uint8_t *room, size_t max);

/** Whether `z` is x + y. */
bool message_loop_is_right(const struct message_loop_job *job, struct slice z);

#endif

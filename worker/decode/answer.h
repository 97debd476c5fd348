/**
 * Whether a result answers a job. Anybody who may write to the topic of results can have written
 * it: it is looked at here before anything is made of it. Threads: pure.
 */
#ifndef DECODE_ANSWER_H
#define DECODE_ANSWER_H

#include "base/error.h"
#include "base/slice.h"

/**
 * Whether `result` has what a worker answers to `job`, which are both messages: a status, and
 * outputs of the names, types, shapes and sizes that the job asks for. *ret_is_ok: the job
 * succeeded. A result that is larger than that takes is not decoded. Errors: ERR_BAD_MESSAGE, if it
 * is no answer; ERR_NO_MEMORY.
 */
MUST_CHECK enum err answer_check(
    struct slice job, struct slice result, bool *ret_is_ok, struct error *err);

#endif

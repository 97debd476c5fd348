/**
 * From a message to a job. The bytes are hostile: lengths are checked before use, sizes before
 * arithmetic, and memory is bounded: beside its payload a message costs its values (base/wire.h: 16
 * bytes each, so at most 16 x its size), freed before decode_job() returns, and the job's arena.
 * Each of the two is at most `arena_bytes_max`; what would need more is ERR_TOO_LARGE.
 *
 * A message is *decodable* when it is one well-formed msgpack map from which a valid `id` can be
 * read. A decodable message always gets a result, so the job carries the id even when the rest
 * breaks the format; only for an undecodable one is the result a dead letter
 * alone.
 *
 * Threads: pure; any number at once.
 */
#ifndef DECODE_DECODE_H
#define DECODE_DECODE_H

#include "decode/limits.h"
#include "job/job.h"

/**
 * Reads what the message of a job that was just created asks for.
 *
 * ERR_OK            it is a whole job.
 * ERR_BAD_MESSAGE   undecodable; it has no id.
 * ERR_NO_MEMORY     it may have no id: then as ERR_BAD_MESSAGE, to be dead-lettered with this code.
 * other codes       decodable but wrong (ERR_BAD_JOB, ERR_TOO_LARGE, ...): it has an id and, where
 *                   it was readable, reply_to; nothing else of the request may be used.
 */
MUST_CHECK enum err decode_job(
    struct job *job, const struct decode_limits *limits, struct error *err);

#endif

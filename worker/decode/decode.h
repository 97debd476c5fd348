/**
 * From a delivery to a job. The bytes are hostile: lengths are checked before use, sizes before
 * arithmetic, and memory is bounded: beside its payload a message costs one block for msgpack-c, of
 * 24 bytes per value that it holds (so at most 24 x its size), freed before decode_job() returns,
 * and the job's arena. Each of the two is at most `arena_bytes_max`; what would need more is
 * ERR_TOO_LARGE.
 *
 * A message is *decodable* when it is one well-formed msgpack map from which a valid `id` can be
 * read. A decodable message always gets a result, so decode_job() returns a job that carries the id
 * even when the rest breaks the format; only for an undecodable one is the result a dead letter
 * alone.
 *
 * Threads: pure; any number at once.
 */
#ifndef DECODE_DECODE_H
#define DECODE_DECODE_H

#include "decode/job.h"
#include "decode/limits.h"

/**
 * A job in *ret owns `delivery` from then on; where *ret is NULL the caller still does.
 *
 * ERR_OK            *ret is a whole job.
 * ERR_BAD_MESSAGE   undecodable; *ret is NULL.
 * ERR_NO_MEMORY     *ret may be NULL: then as ERR_BAD_MESSAGE, to be dead-lettered with this code.
 * other codes       decodable but wrong (ERR_BAD_JOB, ERR_TOO_LARGE, ...): *ret has delivery, id
 *                   and, where it was readable, reply_to; nothing else of it may be used.
 */
MUST_CHECK enum err decode_job(struct delivery *delivery, const struct decode_limits *limits,
    struct job **ret, struct error *err);

#endif

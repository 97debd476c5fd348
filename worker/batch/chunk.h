/**
 * Chunks of a long job (job/long_job.h): how many rounds its next visit to the device runs, and
 * what is known once they have. The first chunk is one round. The others have as many as take, by
 * the last measured round, an eighth of the time that the job has had: a chunk costs the device a
 * pause, and an instance that is done waits for the end of its chunk. CHUNK_MS_MAX bounds it, so
 * that a stop, a cancel or progress need not wait, and others come between. The visit after the
 * last chunk reads the outputs.
 *
 * What a kernel computes does not depend on the size of chunks: the job's buffer of flags says
 * after which round an instance was done, and a kernel that runs again on one changes nothing.
 *
 * Threads: those of batch.h.
 */
#ifndef BATCH_CHUNK_H
#define BATCH_CHUNK_H

#include "batch/layout.h"

enum { CHUNK_MS_MIN = 1, CHUNK_MS_MAX = 100 };

/** Chooses the rounds of the next visit; it may be called again where that was not begun.
 * ERR_NO_MEMORY, before the first one. */
MUST_CHECK enum err chunk_begin(struct job *job, uint64_t now_ns, struct error *err);

/** Bytes that a visit which runs rounds reads back: flags, then each output that it shows. */
uint64_t chunk_readback_bytes(const struct job *job);

/** Of the flags, all that a visit reads. */
uint64_t chunk_flags_bytes(const struct job *job);

/** What is read back of an output that a visit shows: of an array whole parts of its instances. */
struct shown_extent {
    uint64_t at;            /* in the readback */
    uint64_t offset, bytes; /* in the buffer */
};

struct shown_extent chunk_shown(const struct job *job, size_t index);

/** How much longer than the time-out of a round the chunk may take. */
uint64_t chunk_allowance_ns(const struct long_job *long_job);

/** The visit is on its way, with a table of so many rows (coalesce.h). */
void chunk_launched(struct long_job *long_job, uint32_t rows);

/** The rounds have run, in `ns` until `now_ns`. `flags` are those of all instances, `stride` bytes
 * apart; they may be NULL where the job has none. */
void chunk_end(
    struct job *job, const uint8_t *flags, uint64_t stride, uint64_t now_ns, uint64_t ns);

/** Whether the batch that is over was the job's last one. */
bool chunk_was_last(const struct job *job);

/** A retry starts from the first round; the job's memory was given back. */
void chunk_reset(struct long_job *long_job);

#endif

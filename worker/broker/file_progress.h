/**
 * How far a run of files has come: which messages are answered, and how long the output files are
 * with exactly their answers in them. It is kept in memory that outlives the process (the state
 * file), so that the next one goes on: it cuts the files back to those lengths, skips what is
 * answered, and so every message gets one answer however often the process dies.
 *
 * Messages begin at most FILE_PROGRESS_WINDOW beyond the lowest unanswered one. What is kept
 * changes in one store, from one complete snapshot to the next.
 *
 * Lifetime: create() to destroy(), within that of the memory. Threads: as each function says.
 */
#ifndef BROKER_FILE_PROGRESS_H
#define BROKER_FILE_PROGRESS_H

#include <stdint.h>

#include "base/error.h"

enum { FILE_PROGRESS_WINDOW = 16384, FILE_PROGRESS_BYTES = 4352 };

struct file_progress;

/** Goes on from what `room` (FILE_PROGRESS_BYTES, zeroed before its first use) holds. */
MUST_CHECK enum err file_progress_create(void *room, struct file_progress **ret, struct error *err);
void file_progress_destroy(struct file_progress *progress); /* NULL is fine */

struct file_lengths {
    uint64_t results, dead_letters;
};

/** True where an earlier process has begun; `ret` is how long its files are to be. Any thread. */
bool file_progress_is_resumed(const struct file_progress *progress, struct file_lengths *ret);

/** An earlier process has answered it. Any thread. */
bool file_progress_is_answered(const struct file_progress *progress, int64_t index);

/** It may be begun now. Any thread. */
bool file_progress_may_begin(const struct file_progress *progress, int64_t index);

/** It is answered. The sink's thread. */
void file_progress_finish(struct file_progress *progress, int64_t index);

/** The files hold the answers to what is finished, and no others. The sink's thread. */
void file_progress_keep(struct file_progress *progress, const struct file_lengths *lengths);

#endif

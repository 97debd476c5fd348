/**
 * How far a run of files has come: which messages are answered, and how long the output files are
 * with exactly these answers in them. It is kept in memory that outlives the process (the state
 * file). The next process truncates the files to these lengths and skips what is answered, so that
 * every message gets one answer, however often the process dies.
 *
 * A message may begin only if it is less than FILE_PROGRESS_WINDOW above the lowest unanswered one.
 * A single store switches from one complete snapshot to the next.
 *
 * Lifetime: from create() to destroy(), within that of the memory. Threads: each function says
 * which.
 */
#ifndef BROKER_FILE_PROGRESS_H
#define BROKER_FILE_PROGRESS_H

#include <stdint.h>

#include "base/error.h"

enum { FILE_PROGRESS_WINDOW = 16384, FILE_PROGRESS_BYTES = 4352 };

struct file_progress;

/** Continues from what `room` holds (FILE_PROGRESS_BYTES, zeroed before its first use). */
MUST_CHECK enum err file_progress_create(void *room, struct file_progress **ret, struct error *err);
void file_progress_destroy(struct file_progress *progress); /* NULL is fine */

struct file_lengths {
    uint64_t results, dead_letters;
};

/**
 * True if an earlier process has begun the run; `ret` is how long its files must be. Threads: any.
 */
bool file_progress_is_resumed(const struct file_progress *progress, struct file_lengths *ret);

/** Whether an earlier process has answered the message. Threads: any. */
bool file_progress_is_answered(const struct file_progress *progress, int64_t index);

/** Whether the message may begin now. Threads: any. */
bool file_progress_may_begin(const struct file_progress *progress, int64_t index);

/** The message is answered. Threads: the sink's. */
void file_progress_finish(struct file_progress *progress, int64_t index);

/** The files contain the answers to all finished messages, and no others. Threads: the sink's. */
void file_progress_keep(struct file_progress *progress, const struct file_lengths *lengths);

#endif

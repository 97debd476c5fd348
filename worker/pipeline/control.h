/**
 * The control topic: a thread that reads all of it, and keeps the ids of jobs that were cancelled,
 * or are to stop.
 *
 * A cancelled job is answered with ERR_CANCELLED at its next step: when its turn comes, before cold
 * work, before a lane runs it, or while it waits for memory; a long job also between two chunks of
 * rounds. A job that waits for another try is answered at once. Another job that runs is not
 * stopped. A long job that is to stop ends with what it has after the chunk that runs; any job that
 * has not begun is cancelled instead.
 *
 * A message that is wrong is logged, and has no other effect.
 *
 * Lifetime: control_start() to control_stop(). Threads: its own.
 */
#ifndef PIPELINE_CONTROL_H
#define PIPELINE_CONTROL_H

#include "broker/reader.h"
#include "decode/control_message.h"
#include "pipeline/stages.h"

struct control;

/**
 * Owns the reader, also after an error. Without a reader (NULL) no job is cancelled.
 */
MUST_CHECK enum err control_start(
    struct stages *stages, struct reader *reader, struct control **ret, struct error *err);
void control_stop(struct control *control); /* NULL is fine */

/**
 * Whether all has been read that the topic held at the start; true where `control` is NULL. The
 * intake takes no job before, however long that is, so that none runs that was cancelled earlier;
 * every 30 s it is logged. Any thread.
 */
bool control_has_caught_up(const struct control *control);

/** What was asked of the job of that id; nothing where `control` is NULL. Any thread. */
enum control_action control_find(const struct control *control, struct slice id);

#endif

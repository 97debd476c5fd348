/**
 * The control topic: a thread that reads all of it, and keeps the ids of cancelled jobs.
 *
 * A job that is cancelled is answered with ERR_CANCELLED where it would have gone on: when its turn
 * comes, before cold work, before a lane runs it, while it waits for memory; one that
 * waits to be tried again, at once. One that runs is not stopped.
 *
 * What is wrong with a message is logged, and changes nothing else.
 *
 * Lifetime: control_start() to control_stop(). Threads: its own.
 */
#ifndef PIPELINE_CONTROL_H
#define PIPELINE_CONTROL_H

#include "broker/reader.h"
#include "pipeline/stages.h"

struct control;

/**
 * Owns the reader, also where this fails. Reads what the topic holds before it returns, so that
 * nothing runs that was cancelled before: up to 30 s, after which a line says so and it goes on
 * beside the jobs. NULL is no reader: no control.
 */
MUST_CHECK enum err control_start(
    struct stages *stages, struct reader *reader, struct control **ret, struct error *err);
void control_stop(struct control *control); /* NULL is fine */

/** Whether the job of that id was cancelled. NULL: none is. Any thread. */
bool control_has_cancelled(const struct control *control, struct slice id);

#endif

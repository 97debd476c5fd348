/**
 * The feed: what long jobs show of themselves while they run (schemas/README.md, "Progress"), on a
 * topic of its own, so that no reader of results takes it for an answer and no transaction holds it
 * back. Nothing waits for it: what a job shows takes the place of what it showed before and was not
 * sent, and what finds no room is left out.
 *
 * Memory: FEED_MESSAGES_MAX messages that wait, as many that are on their way, and no more; each
 * has PROGRESS_BYTES_MAX of outputs at most. Lifetime: feed_start() to feed_stop(). Threads: any;
 * the sink is that of a thread of its own.
 */
#ifndef PUBLISH_FEED_H
#define PUBLISH_FEED_H

#include "broker/sink.h"
#include "job/job.h"

enum { FEED_MESSAGES_MAX = 128 };

struct feed;

/** Owns the sink, also after an error. `on_failed` is told, on the feed's thread, of what could not
 * be sent. */
MUST_CHECK enum err feed_start(struct sink *sink, void (*on_failed)(const struct error *err),
    struct feed **ret, struct error *err);

/** Sends what waits, if that takes no longer than a second, and ends. NULL is fine. */
void feed_stop(struct feed *feed);

/** Shows what the chunk that is over has read for it: long_job->shown. */
void feed_show(struct feed *feed, const struct job *job);

#endif

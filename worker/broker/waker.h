/**
 * Wakes the client's threads that fetch. Before librdkafka 2.2 one that has found its queue full
 * looks at it again when anything wakes it up, or after a second; a queue that is empty much sooner
 * leaves the lanes idle for the rest. While messages are read, the waker asks the brokers for the
 * ends of partitions: what it wants is the question, which wakes the threads.
 *
 * It does nothing, and has no thread, with a newer librdkafka: its queue is looked at again soon
 * (consumer_conf.c).
 *
 * Lifetime: within the client's. Threads: one of its own; waker_stop() waits for it, for as long as
 * brokers take to answer, and ASK_MS at most.
 */
#ifndef BROKER_WAKER_H
#define BROKER_WAKER_H

#include <librdkafka/rdkafka.h>

#include "base/error.h"

struct waker;

/** `client` is a consumer; *ret is NULL with a newer librdkafka. Errors: ERR_NO_MEMORY. */
MUST_CHECK enum err waker_start(rd_kafka_t *client, struct waker **ret, struct error *err);

/** Sets *waker to NULL, which it may be already. */
void waker_stop(struct waker **waker);

#endif

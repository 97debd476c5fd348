/**
 * Reads a topic as it is, outside of any group: for the control topic, of which every worker reads
 * all, and for commands. Commits nothing and leaves no trace at the broker. Partitions are those
 * that the topic has when the reader is created.
 *
 * Units: milliseconds since 1970, by the clock that stamps messages (the broker's or the sender's).
 * Threads: one at a time.
 */
#ifndef BROKER_READER_H
#define BROKER_READER_H

#include "broker/delivery.h"
#include "broker/kafka_options.h"

/** Where a reader starts, instead of at a time. */
#define READER_FROM_BEGINNING ((uint64_t)0)
#define READER_FROM_NOW UINT64_MAX

struct reader;

/**
 * Starts at the first message of each partition that was published at `from_unix_ms` or later.
 * Waits up to `timeout_ms` for the brokers to say where each partition starts and ends; what is
 * published after this call is read. ERR_BROKER: no broker, or no such topic.
 */
MUST_CHECK enum err reader_create(const struct kafka_options *options, const char *topic,
    uint64_t from_unix_ms, int timeout_ms, struct reader **ret, struct error *err);
void reader_destroy(struct reader *reader); /* NULL is fine */

/** Waits up to `timeout_ms` for a message; ERR_OK with *ret NULL: none came. */
MUST_CHECK enum err reader_poll(
    struct reader *reader, int timeout_ms, struct delivery **ret, struct error *err);

/** True once all has been brought that the topic held when the reader was created. */
bool reader_has_caught_up(const struct reader *reader);

/** True for a message that was published after the reader was created. */
bool reader_is_late(const struct reader *reader, const struct position *position);

#endif

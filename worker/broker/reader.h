/**
 * Reads a topic outside any group: the control topic, which every worker reads in full, and topics
 * for commands. Commits nothing and leaves no trace at the broker. Partitions that are added to the
 * topic are read from their start within seconds. So is a topic that is deleted and created anew:
 * always where ids of topics are told (topic_ids.h); else if it was away for some seconds, or has
 * fewer partitions or messages than before.
 *
 * Units: milliseconds since 1970, by the clock that stamps messages (the broker's or the sender's).
 * Threads: one at a time.
 */
#ifndef BROKER_READER_H
#define BROKER_READER_H

#include "broker/delivery.h"
#include "broker/kafka_options.h"

/** Special values for where a reader starts. */
#define READER_FROM_BEGINNING ((uint64_t)0)
#define READER_FROM_NOW UINT64_MAX

struct reader;

/**
 * Starts at the first message of each partition that was published at `from_unix_ms` or later.
 * Waits up to `timeout_ms` for the brokers to say where each partition starts and ends; what is
 * published after this call is read. Errors: ERR_BROKER, if no broker answers or the topic does not
 * exist. 0: does not wait, since reader_poll() asks until a broker answers.
 */
MUST_CHECK enum err reader_create(const struct kafka_options *options, const char *topic,
    uint64_t from_unix_ms, int timeout_ms, struct reader **ret, struct error *err);
void reader_destroy(struct reader *reader); /* NULL is fine */

/** Whether reader_create() failed because no broker answered; the topic may be there. */
bool reader_missed_brokers(const struct error *err);

/**
 * Waits up to `timeout_ms` for a message, or a second for brokers that have to say where it starts;
 * ERR_OK with *ret NULL: there was none. Errors: ERR_NO_MEMORY; ERR_BROKER, if the topic of a
 * reader that was created without waiting does not exist. The call may be repeated.
 */
MUST_CHECK enum err reader_poll(
    struct reader *reader, int timeout_ms, struct delivery **ret, struct error *err);

/** True once it has returned all messages that the topic had when the reader was created. */
bool reader_has_caught_up(const struct reader *reader);

/** True if the message was published after the reader was created, or its topic anew. */
bool reader_is_late(const struct reader *reader, const struct position *position);

#endif

/**
 * Reads a topic as it is, all partitions, outside of any group: for `tail`, and for `submit` to
 * find its result. Commits nothing and leaves no trace at the broker.
 *
 * Threads: one at a time.
 */
#ifndef BROKER_READER_H
#define BROKER_READER_H

#include "broker/delivery.h"
#include "broker/kafka_options.h"

enum reader_start { READER_FROM_NOW, READER_FROM_BEGINNING };

struct reader;

/**
 * Waits up to `timeout_ms` for the brokers to say where each partition starts and ends; what is
 * published after this call is read. ERR_BROKER: no broker, or no such topic.
 */
MUST_CHECK enum err reader_create(const struct kafka_options *options, const char *topic,
    enum reader_start start, int timeout_ms, struct reader **ret, struct error *err);
void reader_destroy(struct reader *reader); /* NULL is fine */

/** Waits up to `timeout_ms` for a message; ERR_OK with *ret NULL: none came. */
MUST_CHECK enum err reader_poll(
    struct reader *reader, int timeout_ms, struct delivery **ret, struct error *err);

#endif

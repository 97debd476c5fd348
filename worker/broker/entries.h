/**
 * Records from when they are sent until they are settled, in the order of sending. Only for
 * transaction.c.
 *
 * Lifetime: an entry belongs to its list until entries_settle(). Threads: the sink's.
 */
#ifndef BROKER_ENTRIES_H
#define BROKER_ENTRIES_H

#include <librdkafka/rdkafka.h>

#include "broker/offsets.h"
#include "broker/sink.h"

struct transaction;

struct entry {
    struct record sent; /* what the producer gets in each transaction; the first member */
    struct record *record;
    struct transaction *transaction;
    bool is_being_sent, is_delivered;
    struct error err; /* ERR_OK until it fails */
    struct entry *next;
};

struct entries {
    struct entry *first, **last_next;
};

void entries_init(struct entries *entries);
void entries_add(struct entries *entries, struct entry *entry);

/** Takes the first one; NULL if there is none. */
struct entry *entries_take_first(struct entries *entries);

/** Takes all of them, as a list. */
struct entry *entries_take(struct entries *entries);

/** Settles each entry of such a list with its error, and frees it. */
void entries_settle(struct entry *first);

/**
 * The same. What is sent meanwhile, to `waiting`, comes before what waits already: what is said
 * instead of a refused record before the last record of its message, which a transaction ends with.
 */
void entries_settle_before(struct entries *waiting, struct entry *first);

/** Settles all of them with `err`. */
void entries_fail(struct entries *entries, const struct error *err);

/**
 * Sorts the entries of such a list: those whose message does not belong to this worker any more, or
 * that were refused, are over; the others are kept, without an error.
 */
void entries_sort_out(
    struct entry *first, struct offsets *offsets, struct entries *kept, struct entries *over);

/**
 * The messages that the first `count` entries answer completely; NULL when memory is short. The
 * caller frees the list.
 */
const struct position **entries_list_answered(const struct entries *entries, size_t count);

/**
 * A topic refused the records of one message for the reason `native`. Those that name a topic
 * themselves and are not delivered get that error. Without any it is a configured topic, and
 * `failure` is the error.
 */
void entries_refuse(
    struct entries *entries, const struct sink *producer, int native, struct error *failure);

/**
 * Whether a group has committed what was wanted of it. Only messages that are still ours can tell;
 * others may have been committed by their new owners.
 */
MUST_CHECK bool entries_were_committed(const struct entries *entries, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *wanted,
    const rd_kafka_topic_partition_list_t *committed);

#endif

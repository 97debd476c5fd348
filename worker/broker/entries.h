/**
 * Records from their sending until they are settled, in the order of their sending. Only for
 * transaction.c.
 *
 * Lifetime: an entry is its list's until entries_settle(). Threads: the sink's.
 */
#ifndef BROKER_ENTRIES_H
#define BROKER_ENTRIES_H

#include "broker/offsets.h"
#include "broker/sink.h"

struct transaction;

struct entry {
    struct record sent; /* what the producer gets, once a transaction; first */
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

/** The first one; NULL where there is none. */
struct entry *entries_take_first(struct entries *entries);

/** All of them: a list of their own. */
struct entry *entries_take(struct entries *entries);

/** Settles each entry of such a list with what its error says, and frees it. */
void entries_settle(struct entry *first);

/** Settles all of them with `err`. */
void entries_fail(struct entries *entries, const struct error *err);

/** Puts each entry of such a list where it belongs: those whose message is not ours any more, or
 * that were refused, are over; others are kept, without an error. */
void entries_sort_out(
    struct entry *first, struct offsets *offsets, struct entries *kept, struct entries *over);

/** The messages that `count` of the entries answer completely; NULL when memory is short. The
 * caller frees the list. */
const struct position **entries_list_answered(const struct entries *entries, size_t count);

/** Gives each record that names a topic of its own and is not delivered the error of that refusal;
 * false where there is none. */
bool entries_refuse_undelivered(struct entries *entries, int native);

#endif

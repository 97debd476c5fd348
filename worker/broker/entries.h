/**
 * Records from their sending until they are settled, in the order of their sending. Only for
 * transaction.c.
 *
 * Lifetime: an entry is its list's until entries_settle(). Threads: the sink's.
 */
#ifndef BROKER_ENTRIES_H
#define BROKER_ENTRIES_H

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

#endif

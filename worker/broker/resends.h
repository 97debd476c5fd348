/**
 * Records that a broker refused together with others. It refuses all of a batch for one record that
 * it does not take, or for the size of the batch, and does not say which it was. So they are sent
 * again in groups, of half as many after each refusal; one that is refused alone is to blame. What
 * is sent meanwhile waits behind them, and joins the groups.
 *
 * Lifetime: the records belong to the caller. Threads: one at a time.
 */
#ifndef BROKER_RESENDS_H
#define BROKER_RESENDS_H

#include "broker/sink.h"

struct resends {
    struct record **records; /* in their order */
    size_t count, room;
    size_t sent_count; /* of those, the first: they were sent, and not settled since */
    /* of the group on its way, if there is one: how many it has, were sent, and were answered */
    size_t group_count, group_sent, group_answered;
    bool was_refused; /* one of it */
    size_t group_max; /* of the next one; 0: not known */
};

void resends_fini(struct resends *resends); /* a zeroed one is fine */

/** True: records that are to be sent now have to wait here. */
static inline bool resends_are_any(const struct resends *resends) {
    return resends->count > 0;
}

/** A record waits: one that was refused, or one behind those. False when memory is short. */
MUST_CHECK bool resends_add(struct resends *resends, struct record *record);

/** The next record to send, if nothing else is on its way than its group; NULL: none for now. */
struct record *resends_next(struct resends *resends);

/**
 * The broker has answered for a record. True: it is settled. False: it was refused together with
 * others, and waits for another group.
 */
MUST_CHECK bool resends_report(
    struct resends *resends, const struct record *record, bool is_refused);

/** Takes a record that is not on its way, to settle it for good; NULL: there is none. */
struct record *resends_take_waiting(struct resends *resends);

#endif

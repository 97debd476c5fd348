/**
 * From where each partition is read, and which of them end executors before any message of theirs
 * is in anybody's hands: a few compressed bytes may become more than the process has.
 *
 * A life notes where it begins to read each partition. If FETCHES_LIVES_MAX in a row die after they
 * began at the same place, and nobody knows of what, the next life reads that partition alone
 * first, while nothing else is read and nothing runs. One during whose trial FETCHES_DEATHS_MAX
 * lives have crashed, or were killed after their memory had grown by what no message explains, is
 * set aside: it is not read until its place has moved or somebody lifts that. A kill without such
 * growth is no evidence.
 *
 * FETCHES_MAX partitions are noted; others are read like any that nothing is known of. Of those
 * that are not set aside nothing is known any more once a life ends as it should (state_end()).
 *
 * Lifetime: of the state. Threads: one at a time; lift(), each() and count() any, also from
 * another process. NULL is fine: nothing is known of any partition.
 */
#ifndef QUARANTINE_FETCHES_H
#define QUARANTINE_FETCHES_H

#include "state/state.h"

enum { FETCHES_LIVES_MAX = 2, FETCHES_DEATHS_MAX = 2 };

typedef void fetches_visit(void *context, const char *topic, int32_t partition, int64_t offset);

/** What the death of the life before says, between state_open() and state_begin(). */
void fetches_judge(struct state *state);

/** Whether that death counts against a partition on trial: so many more of these are to come. */
MUST_CHECK bool fetches_has_evidence(const struct state *state);

enum fetches_verdict { FETCHES_READ, FETCHES_TRY, FETCHES_ASIDE };

/** Whether and how it may be read from `offset` on. Notes that it is. */
MUST_CHECK enum fetches_verdict fetches_ask(
    struct state *state, const char *topic, int32_t partition, int64_t offset);

/** What stands below `next` is committed: reading it would begin there. */
void fetches_move(struct state *state, const char *topic, int32_t partition, int64_t next);

/** Its trial begins; memory grows by what no message explains; it has passed. */
void fetches_try(struct state *state, const char *topic, int32_t partition);
void fetches_inflate(struct state *state, const char *topic, int32_t partition);
void fetches_pass(struct state *state, const char *topic, int32_t partition);

/** Those that are set aside. */
void fetches_each_aside(const struct state *state, fetches_visit *visit, void *context);
size_t fetches_count_aside(const struct state *state);

/** Has it read again; says whether it was set aside. */
bool fetches_lift(struct state *state, const char *topic, int32_t partition);
void fetches_lift_all(struct state *state);

#endif

/**
 * Notes from where each partition is read, to find partitions that end executors before any of
 * their messages is in hand: a few compressed bytes may need more memory than the process has.
 *
 * A life notes where it begins to read each partition. If FETCHES_LIVES_MAX lives in a row die
 * after they began at the same place, for no known reason, the next life tries that partition: it
 * reads it alone first, reads nothing else and runs nothing. A crash with messages in hand is
 * theirs, and does not count. A partition is set aside if
 * FETCHES_DEATHS_MAX lives have crashed during its trial, or were killed there after their memory
 * had grown more than any message explains. It is then not read until its committed offset has
 * moved or an operator allows it. A kill without such growth is no evidence.
 *
 * Up to FETCHES_MAX partitions are noted; others are read as usual. When a life ends as it should
 * (state_end()), all partitions are forgotten except those that are set aside.
 *
 * Lifetime: that of the state. Threads: one at a time; lift(), each() and count() any, also in
 * another process. NULL is fine: then nothing is known of any partition.
 */
#ifndef QUARANTINE_FETCHES_H
#define QUARANTINE_FETCHES_H

#include "state/state.h"

enum { FETCHES_LIVES_MAX = 2, FETCHES_DEATHS_MAX = 2 };

typedef void fetches_visit(void *context, const char *topic, int32_t partition, int64_t offset);

/** Judges the death of the last life. Call it between state_open() and state_begin(). */
void fetches_judge(struct state *state);

/** Whether that death counts against a partition on trial; then more such deaths may follow. */
MUST_CHECK bool fetches_has_evidence(const struct state *state);

enum fetches_verdict { FETCHES_READ, FETCHES_TRY, FETCHES_ASIDE };

/** Whether and how the partition may be read from `offset` on. Notes that it is read. */
MUST_CHECK enum fetches_verdict fetches_ask(
    struct state *state, const char *topic, int32_t partition, int64_t offset);

/** Messages below `next` are committed, so the next life begins to read there. */
void fetches_move(struct state *state, const char *topic, int32_t partition, int64_t next);

/** A trial begins; memory grows more than any message explains; the trial has passed. */
void fetches_try(struct state *state, const char *topic, int32_t partition);
void fetches_inflate(struct state *state, const char *topic, int32_t partition);
void fetches_pass(struct state *state, const char *topic, int32_t partition);

/** Visits the partitions that are set aside. */
void fetches_each_aside(const struct state *state, fetches_visit *visit, void *context);
size_t fetches_count_aside(const struct state *state);

/** Allows the partition to be read again; returns whether it was set aside. */
bool fetches_lift(struct state *state, const char *topic, int32_t partition);
void fetches_lift_all(struct state *state);

#endif

/**
 * Suspensions: keys and programs that are refused for a while because too many of their jobs were
 * convicted (attribution.h). They are kept in the state file, because they must outlive the
 * executors that such jobs end.
 *
 * A key is suspended once its jobs have ended an executor `convictions` times within the window,
 * each while it ran alone. A program is suspended once that many of its jobs were convicted. For
 * this, all jobs of one key count once, and each job without a key counts, so a sender with one key
 * cannot get a program suspended for others. A suspended program still runs for keys in good
 * standing: those with a finished job of it within the last day, if none of their jobs was
 * convicted. So a sender with many keys cannot take a program away from its users.
 *
 * Everything is bounded: SUSPENSION_KEYS_MAX keys, SUSPENSION_PROGRAMS_MAX programs and
 * SUSPENSION_STANDINGS_MAX pairs of both in good standing. When a table is full, entries that are
 * not suspended are replaced, those with the least evidence first, and standings that were not
 * renewed for long. Names are hashed with a secret seed, so that no sender can aim at an entry.
 *
 * Units: milliseconds since 1970. Lifetime: that of the state. Threads: those that change
 * something but praise and lift, one at a time; all others any, also in another process. NULL is
 * fine: nothing is suspended.
 */
#ifndef QUARANTINE_SUSPENSIONS_H
#define QUARANTINE_SUSPENSIONS_H

#include "base/slice.h"
#include "state/state.h"

enum suspension_kind { SUSPENSION_KEY, SUSPENSION_PROGRAM, SUSPENSION_KINDS };

struct suspension_rules {
    uint32_t convictions; /* how many suspend, at most SUSPENSION_CONVICTIONS_MAX; 0: never */
    uint32_t window_ms, for_ms;
};

/**
 * A job of `key` (empty: none) that names `program` was convicted. Call it once for each of its
 * programs.
 */
void suspensions_convict(struct state *state, const struct suspension_rules *rules,
    struct slice key, struct slice program, uint64_t now_ms);

/**
 * A job of `key` ended an executor while it ran alone. Returns how many did within the window,
 * whether they suspend the key or not; 0 without a key.
 */
uint32_t suspensions_count_death(
    struct state *state, const struct suspension_rules *rules, struct slice key, uint64_t now_ms);

/** Holds the messages of a key until clock_ns() is `until_ns` (suspects.h). */
void suspensions_hold(struct state *state, struct slice key, uint64_t until_ns);

/** Until when they are; in the past, or 0: they are not. */
uint64_t suspensions_held_until(const struct state *state, struct slice key);

/** A job of `key` that names `program` succeeded. Cheap if that is known already. */
void suspensions_praise(
    struct state *state, struct slice key, struct slice program, uint64_t now_ms);

/** False: no key and no program is suspended. Fast, because it is called for every job. */
bool suspensions_may_apply(const struct state *state);

/** Until when the key is suspended; 0: it is not. */
uint64_t suspensions_key_until(const struct state *state, struct slice key, uint64_t now_ms);
uint64_t suspensions_program_until(
    const struct state *state, struct slice key, struct slice program, uint64_t now_ms);

/** How many are suspended. */
size_t suspensions_count(const struct state *state, enum suspension_kind kind, uint64_t now_ms);

struct suspension {
    enum suspension_kind kind;
    struct slice name; /* valid during the visit; its first SUSPENSION_NAME_BYTES */
    uint64_t until_ms;
};
typedef void suspensions_visit(void *context, const struct suspension *suspension);
void suspensions_each(
    const struct state *state, uint64_t now_ms, suspensions_visit *visit, void *context);

/** Ends the suspension of that name, forgets its convictions, and holds it no more. Returns whether
 * there was one. */
bool suspensions_lift(struct state *state, enum suspension_kind kind, struct slice name);
void suspensions_lift_all(struct state *state);

#endif

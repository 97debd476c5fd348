/**
 * Culprits: the instances of an array that end executors. An array that is a suspect runs alone, in
 * slices, and the state file says which instances are on the device. If the executor dies of them,
 * the next life runs these first, in CULPRITS_PARTS parts, until the instance is found that ends an
 * executor alone: it is convicted, and not run again. What stood behind it is still suspected, and
 * runs next, in parts as well. So the array loses only its culprits, at two deaths for each, and
 * one for each slice that had some.
 *
 * What ran well before a death runs again in the next life, because its outputs are lost. The array
 * is convicted as a whole, like any other job, if it has more culprits than it may have, or no
 * other instances; if it died CULPRITS_FRUITLESS_MAX times of instances that all ran well in parts;
 * of deaths without a known cause (attribution.h); and if the state file has no room for its
 * search.
 *
 * Threads: one at a time, the one that opened the state or that runs the array.
 */
#ifndef QUARANTINE_CULPRITS_H
#define QUARANTINE_CULPRITS_H

#include "job/job.h"
#include "state/state.h"

enum { CULPRITS_PARTS = 64, CULPRITS_FRUITLESS_MAX = 3 };

/* ---- what is known of an array ---- */

/** NULL: nothing. */
struct state_search *culprits_find(const struct state *state, const struct state_entry *entry);

/**
 * The search of the array that runs now, which goes on where the last life left it. `culprits_max`
 * is bounded by STATE_CULPRITS_MAX; 0 searches for none. NULL: there is no search.
 */
struct state_search *culprits_search(struct state *state, const struct position *position,
    uint32_t instances, uint32_t culprits_max);

/**
 * What was running has failed with this error: it is looked at more closely, or is a culprit if it
 * was one instance. False: the array itself is to be convicted; also where nothing was running.
 */
MUST_CHECK bool culprits_blame(struct state_search *search, enum err code, const char *message);

/** The array is answered, and may be read again until that is committed. False: nothing is known
 * of it that would be missed then. What is kept gives its place to another search. */
MUST_CHECK bool culprits_keep(const struct state *state, const struct state_entry *entry);

/** The array's answer is committed, or it is not searched any more. */
void culprits_forget(const struct state *state, const struct state_entry *entry);

/* ---- a life's walk over the instances ---- */

struct culprits_walk {
    struct state_search *search; /* NULL: every instance runs */
    uint32_t instances, most;    /* of the array, and of a slice */
    struct state_range first;    /* what is suspected, and runs first: */
    uint32_t inner_end;          /* up to here it is suspected most */
    uint32_t at;
    bool is_past_first;
};

struct culprits_walk culprits_walk(struct state_search *search, uint32_t instances, uint32_t most);

/** The instances to run next, which stand as running from now on. False: there are no more. */
MUST_CHECK bool culprits_walk_next(struct culprits_walk *walk, struct array_slice *ret);

/** Nothing is running any more; the device has survived it. */
void culprits_walk_fence(struct culprits_walk *walk);

#endif

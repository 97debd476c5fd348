/**
 * Slow jobs that wait, in groups of those that may share a batch (composition.h). The groups take
 * turns; the first job of a group stands for it. Groups are found by their signature: there are
 * thousands of them where senders launch as many kernels, or each job as wide as its data.
 *
 * Lifetime: zeros to begin with; slow_groups_fini() when it is empty. Threads: one at a time.
 */
#ifndef BATCH_SLOW_GROUPS_H
#define BATCH_SLOW_GROUPS_H

#include "batch/composition.h"

/** The first jobs of groups. Those that run alone are not found by their signature. */
struct slow_groups {
    struct list by_turn;            /* place.by_turn */
    struct hash_table by_signature; /* place.by_signature */
};

void slow_groups_fini(struct slow_groups *groups);

/** Adds the job to its group, or begins one. */
void slow_groups_add(struct slow_groups *groups, struct job *job);

/** The group after this one, by turn; the first one for NULL. NULL: there is none. */
struct job *slow_groups_next(const struct slow_groups *groups, const struct job *group);

/** A group of the signature, of any tenant: the one after `group`, or the first for NULL. */
struct job *slow_groups_find(
    const struct slow_groups *groups, uint64_t signature, const struct job *group);

void slow_groups_remove(struct slow_groups *groups, struct job *group);

/** Takes `most` jobs of a group, or as many as fit the slab. The rest stands behind the other
 * groups. Returns how many. */
size_t slow_groups_take(struct slow_groups *groups, struct job *group,
    const struct composition_limits *limits, size_t most, struct job **ret);

/** Takes any job; NULL if there is none. */
struct job *slow_groups_pop(struct slow_groups *groups);

#endif

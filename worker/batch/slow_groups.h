/**
 * Slow jobs that wait, in groups of those that may share a batch (composition.h). The groups take
 * turns; the first job of a group stands for it.
 *
 * Lifetime: zeros to begin with. Threads: one at a time.
 */
#ifndef BATCH_SLOW_GROUPS_H
#define BATCH_SLOW_GROUPS_H

#include "batch/composition.h"

/** place.next_group: the next group's first job; place.next: the others of the group. */
struct slow_groups {
    struct job *first, *last;
};

/** Adds the job to its group, or begins one. */
void slow_groups_add(struct slow_groups *groups, struct job *job);

/** Removes a group, which `before` stands before; NULL: it is the first. */
void slow_groups_remove(struct slow_groups *groups, struct job *before, struct job *group);

/** Takes `most` jobs of a group, which `before` stands before, or as many as fit the slab. The rest
 * stands behind the other groups. Returns how many. */
size_t slow_groups_take(struct slow_groups *groups, struct job *before, struct job *group,
    const struct composition_limits *limits, size_t most, struct job **ret);

/** Takes any job; NULL if there is none. */
struct job *slow_groups_pop(struct slow_groups *groups);

#endif

/**
 * Slow jobs that wait, in groups of those that may share a batch (composition.h). The groups take
 * turns; the first job of a group stands for it.
 *
 * Lifetime: zeros to begin with. Threads: one at a time.
 */
#ifndef BATCH_SLOW_GROUPS_H
#define BATCH_SLOW_GROUPS_H

#include "job/job.h"

/** place.next_group: the next group's first job; place.next: the others of the group. */
struct slow_groups {
    struct job *first, *last;
};

/** Adds the job to its group, or begins one. */
void slow_groups_add(struct slow_groups *groups, struct job *job);

/** Removes a group, which `before` stands before; NULL: it is the first. */
void slow_groups_remove(struct slow_groups *groups, struct job *before, struct job *group);

/** What is left of a group, from `first` to `last`: the other groups have their turn first. */
void slow_groups_put_back(struct slow_groups *groups, struct job *first, struct job *last);

/** Takes any job; NULL if there is none. */
struct job *slow_groups_pop(struct slow_groups *groups);

#endif

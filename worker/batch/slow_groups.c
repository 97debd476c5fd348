#include "batch/slow_groups.h"

static void append(struct slow_groups *groups, struct job *first) {
    first->place.next_group = NULL;
    if (groups->first == NULL) groups->first = first;
    else groups->last->place.next_group = first;
    groups->last = first;
}

/* Where there are many groups, one that is further behind is not found, and begun again. */
void slow_groups_add(struct slow_groups *groups, struct job *job) {
    job->place = (struct ready_place){.last = job};
    struct job *group = groups->first;
    for (int i = 0; group != NULL && i < COMPOSITION_PASSED_MAX; i++) {
        if (composition_same_group(group, job)) {
            group->place.last->place.next = job;
            group->place.last = job;
            return;
        }
        group = group->place.next_group;
    }
    append(groups, job);
}

void slow_groups_remove(struct slow_groups *groups, struct job *before, struct job *group) {
    if (before == NULL) groups->first = group->place.next_group;
    else before->place.next_group = group->place.next_group;
    if (groups->last == group) groups->last = before;
}

/* What is left of a group. */
static void put_back(struct slow_groups *groups, struct job *first, struct job *last) {
    first->place.last = last;
    append(groups, first);
}

size_t slow_groups_take(struct slow_groups *groups, struct job *before, struct job *group,
    const struct composition_limits *limits, size_t most, struct job **ret) {
    size_t count = 0;
    uint64_t bytes = 0;
    struct job *last = group->place.last, *job = group;
    slow_groups_remove(groups, before, group);
    for (; job != NULL && count < most; job = job->place.next) {
        bytes += composition_job_bytes(limits, job);
        if (count > 0 && bytes > limits->slab_bytes) break;
        ret[count++] = job;
    }
    if (job != NULL) put_back(groups, job, last);
    return count;
}

struct job *slow_groups_pop(struct slow_groups *groups) {
    struct job *job = groups->first;
    if (job == NULL) return NULL;
    struct job *last = job->place.last, *next = job->place.next;
    slow_groups_remove(groups, NULL, job);
    if (next != NULL) put_back(groups, next, last);
    return job;
}

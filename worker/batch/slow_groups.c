#include "batch/slow_groups.h"

#include "base/hash.h"

/* Senders choose what they launch, but no bucket. */
static uint64_t hash_of(uint64_t signature) {
    return hash_more(HASH_START, slice_of(&signature, sizeof signature));
}

static struct job *group_at(struct list_node *node) {
    return node != NULL ? LIST_ITEM(node, struct job, place.by_turn) : NULL;
}

static struct job *group_of(struct hash_node *node) {
    return node != NULL ? HASH_ITEM(node, struct job, place.by_signature) : NULL;
}

void slow_groups_fini(struct slow_groups *groups) {
    hash_table_fini(&groups->by_signature);
}

struct job *slow_groups_next(const struct slow_groups *groups, const struct job *group) {
    return group_at(group != NULL ? group->place.by_turn.after : groups->by_turn.first);
}

struct job *slow_groups_find(
    const struct slow_groups *groups, uint64_t signature, const struct job *group) {
    return group_of(group != NULL ? hash_node_next(&group->place.by_signature)
                                  : hash_table_find(&groups->by_signature, hash_of(signature)));
}

/* Behind the other groups. */
static void append(struct slow_groups *groups, struct job *first) {
    list_append(&groups->by_turn, &first->place.by_turn);
    if (!composition_runs_alone(first))
        hash_table_add(&groups->by_signature, &first->place.by_signature,
            hash_of(composition_signature(first)));
}

/* Where many tenants launch the same, a group that is not found soon is begun again. */
void slow_groups_add(struct slow_groups *groups, struct job *job) {
    struct job *group = slow_groups_find(groups, composition_signature(job), NULL);
    job->place = (struct ready_place){.last = job};
    for (int i = 0; group != NULL && i < COMPOSITION_PASSED_MAX; i++) {
        if (composition_same_group(group, job)) {
            group->place.last->place.next = job;
            group->place.last = job;
            return;
        }
        group = slow_groups_find(groups, composition_signature(job), group);
    }
    append(groups, job);
}

void slow_groups_remove(struct slow_groups *groups, struct job *group) {
    list_remove(&groups->by_turn, &group->place.by_turn);
    if (!composition_runs_alone(group))
        hash_table_remove(&groups->by_signature, &group->place.by_signature);
}

/* What is left of a group. */
static void put_back(struct slow_groups *groups, struct job *first, struct job *last) {
    first->place.last = last;
    append(groups, first);
}

size_t slow_groups_take(struct slow_groups *groups, struct job *group,
    const struct composition_limits *limits, size_t most, struct job **ret) {
    size_t count = 0;
    uint64_t bytes = 0;
    struct job *last = group->place.last, *job = group;
    slow_groups_remove(groups, group);
    for (; job != NULL && count < most; job = job->place.next) {
        bytes += composition_job_bytes(limits, job);
        if (count > 0 && bytes > limits->slab_bytes) break;
        ret[count++] = job;
    }
    if (job != NULL) put_back(groups, job, last);
    return count;
}

struct job *slow_groups_pop(struct slow_groups *groups) {
    struct job *job = slow_groups_next(groups, NULL);
    if (job == NULL) return NULL;
    struct job *last = job->place.last, *next = job->place.next;
    slow_groups_remove(groups, job);
    if (next != NULL) put_back(groups, next, last);
    return job;
}

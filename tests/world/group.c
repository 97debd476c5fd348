/* The coordinator of groups, of the classic protocol, and their leaders (cluster.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/cluster.h"
#include "world/scheduler.h"
#include "world/sticky.h"

enum {
    GROUP_TOPICS = 4,
    JOIN_DELAY_MS = 20,
    LOOK_MS = 10000, /* the worker's topic.metadata.refresh.interval.ms */
    PLACES_MAX = CLUSTER_TOPICS * CLUSTER_PARTITIONS
};

struct place {
    char topic[CLUSTER_NAME_SIZE];
    int32_t partition;
};

struct member {
    char id[64], instance[CLUSTER_NAME_SIZE];
    struct group *group;
    pid_t process;
    bool is_in, has_joined; /* the rebalance that goes on */
    uint64_t session_ns, poll_interval_ns, polled_ns, joined_ns;
    uint64_t abandoned_ns; /* UINT64_MAX: it is not */
    char topics[GROUP_TOPICS][CLUSTER_NAME_SIZE];
    size_t topic_count;
    size_t count;
    struct place assigned[PLACES_MAX];
    bool is_cooperative;
    size_t owned_count; /* what it says that it has, and in which generation it had it */
    struct place owned[PLACES_MAX];
    int32_t owned_generation;
};

/* What is committed, or will be with a transaction. */
struct committed {
    char topic[CLUSTER_NAME_SIZE];
    int32_t partition;
    int64_t offset;
    const void *metadata;
    size_t metadata_size;
    const struct txn *txn; /* NULL: it is committed */
};

struct group {
    char name[CLUSTER_NAME_SIZE];
    struct group *next;
    int32_t generation;
    bool tells, is_rebalancing;
    uint64_t since_ns, deadline_ns, next_look_ns;
    int32_t partition_counts[CLUSTER_TOPICS];
    uint64_t next_member;
    struct member *members[CLUSTER_MEMBERS];
    size_t member_count;
    struct committed offsets[CLUSTER_OFFSETS];
    size_t offset_count;
};

static struct group *groups, *group; /* the first of all, and the one that a call is about */

static struct group *new_group(const char *name) {
    struct group *ret = scheduler_alloc(sizeof *ret);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return ret;
}

void group_begin(bool tells) {
    group = groups = new_group("workers");
    group->tells = tells;
}

void group_use(const char *name) {
    struct group *last = groups;
    for (group = groups; group != NULL; last = group, group = group->next)
        if (strcmp(group->name, name) == 0) return;
    group = last->next = new_group(name);
}

/* ---- members ---- */

static const struct topic *topic_of(const struct member *member, size_t i) {
    return cluster_find_topic(member->topics[i]);
}

/* The leader takes it for what is handed out. */
static void note_topics(const struct member *leader) {
    for (size_t i = 0; i < leader->topic_count; i++) {
        const struct topic *topic = topic_of(leader, i);
        group->partition_counts[i] = topic != NULL ? topic->partition_count : 0;
    }
}

static void rebalance(void) {
    uint64_t longest_ns = 0;
    if (group->is_rebalancing) return;
    group->is_rebalancing = true;
    group->since_ns = scheduler_now_ns();
    for (size_t i = 0; i < group->member_count; i++) {
        group->members[i]->has_joined = false;
        if (group->members[i]->poll_interval_ns > longest_ns)
            longest_ns = group->members[i]->poll_interval_ns;
    }
    group->deadline_ns = group->since_ns + longest_ns;
    cluster_changed();
}

static void expel(struct member *member) {
    size_t kept = 0;
    for (size_t i = 0; i < group->member_count; i++)
        if (group->members[i] != member) group->members[kept++] = group->members[i];
    group->member_count = kept;
    member->is_in = false;
    rebalance();
}

/* A static member that comes again has the partitions of the one that it was. */
static struct member *find_instance(const char *instance) {
    for (size_t i = 0; i < group->member_count; i++)
        if (instance[0] != 0 && strcmp(group->members[i]->instance, instance) == 0)
            return group->members[i];
    return NULL;
}

struct member *group_join(pid_t process, const char *instance, uint32_t session_ms,
    uint32_t poll_interval_ms, char *const *topics, size_t topic_count) {
    struct member *member = scheduler_alloc(sizeof *member);
    struct member *earlier = find_instance(instance);
    bool takes_over = earlier != NULL && !group->is_rebalancing;
    if (takes_over) {
        *member = *earlier;
        for (size_t i = 0; i < group->member_count; i++)
            if (group->members[i] == earlier) group->members[i] = member;
        earlier->is_in = false;
    } else if (earlier != NULL) {
        expel(earlier);
    }
    snprintf(
        member->id, sizeof member->id, "member-%llu", (unsigned long long)group->next_member++);
    snprintf(member->instance, sizeof member->instance, "%s", instance);
    member->group = group;
    member->process = process;
    member->abandoned_ns = UINT64_MAX;
    member->is_in = true;
    member->session_ns = session_ms * 1000000ull;
    member->poll_interval_ns = poll_interval_ms * 1000000ull;
    member->polled_ns = member->joined_ns = scheduler_now_ns();
    if (takes_over && group->members[0] == member) note_topics(member); /* KIP-814 */
    if (takes_over) return member;
    member->topic_count = topic_count < GROUP_TOPICS ? topic_count : GROUP_TOPICS;
    for (size_t i = 0; i < member->topic_count; i++)
        snprintf(member->topics[i], sizeof member->topics[i], "%s", topics[i]);
    rebalance();
    member->has_joined = true;
    group->members[group->member_count++] = member;
    return member;
}

void group_claim(
    struct member *member, const rd_kafka_topic_partition_list_t *owned, int32_t generation) {
    member->is_cooperative = true;
    member->owned_generation = generation;
    member->owned_count = 0;
    for (int i = 0; i < owned->cnt; i++) {
        struct place *place = &member->owned[member->owned_count++];
        snprintf(place->topic, sizeof place->topic, "%s", owned->elems[i].topic);
        place->partition = owned->elems[i].partition;
    }
}

void group_leave(struct member *member) {
    group = member->group;
    if (member->is_in) expel(member);
}

void group_remove(pid_t process) {
    for (size_t i = group->member_count; i-- > 0;)
        if (group->members[i]->process == process) expel(group->members[i]);
}

void group_abandon(struct member *member) {
    member->abandoned_ns = scheduler_now_ns();
}

void group_polled(struct member *member) {
    member->polled_ns = scheduler_now_ns();
}

const char *group_member_id(const struct member *member) {
    return member->id;
}

int32_t group_generation(void) {
    return group->generation;
}

int32_t group_member_generation(const struct member *member) {
    return member->group->generation;
}

/* ---- rebalances ---- */

/* The coordinator hears heartbeats while the process runs, and the client gives up itself when
 * nobody polls it. */
static bool is_over(const struct member *member) {
    if (scheduler_silence_ns(member->process, member->joined_ns) >= member->session_ns) return true;
    if (member->abandoned_ns != UINT64_MAX)
        return scheduler_now_ns() - member->abandoned_ns >= member->session_ns;
    return scheduler_now_ns() - member->polled_ns >= member->poll_interval_ns;
}

/* The member may come back as the static one that it is. */
static bool is_away(const struct member *member) {
    return member->abandoned_ns != UINT64_MAX || scheduler_is_silent(member->process);
}

static bool wants(const struct member *member, const char *topic) {
    for (size_t i = 0; i < member->topic_count; i++)
        if (strcmp(member->topics[i], topic) == 0) return true;
    return false;
}

static void give(struct member *member, const char *topic, int32_t partition) {
    struct place *place = &member->assigned[member->count++];
    snprintf(place->topic, sizeof place->topic, "%.*s", CLUSTER_NAME_SIZE - 1, topic);
    place->partition = partition;
}

/* As the range assignor does, with the members in the order of their joining. */
static void assign_topic(const struct topic *topic) {
    struct member *takers[CLUSTER_MEMBERS];
    int32_t count = 0, next = 0;
    for (size_t i = 0; i < group->member_count; i++)
        if (wants(group->members[i], topic->name)) takers[count++] = group->members[i];
    for (int32_t i = 0; i < count; i++) {
        int32_t share = topic->partition_count / count + (i < topic->partition_count % count);
        for (; share > 0; share--, next++) give(takers[i], topic->name, next);
    }
}

static struct sticky_partition *find_sticky(const struct place *places,
    struct sticky_partition *partitions, size_t count, const struct place *place) {
    for (size_t i = 0; i < count; i++)
        if (places[i].partition == place->partition && strcmp(places[i].topic, place->topic) == 0)
            return &partitions[i];
    return NULL;
}

/* What is not there any more stays with who has it, who will see that itself. */
static void note_claims(struct place *places, struct sticky_partition *partitions, size_t count) {
    int32_t generations[PLACES_MAX];
    for (size_t i = 0; i < group->member_count; i++) {
        struct member *member = group->members[i];
        for (size_t k = 0; k < member->owned_count; k++) {
            const struct place *place = &member->owned[k];
            struct sticky_partition *found = find_sticky(places, partitions, count, place);
            if (found == NULL) {
                give(member, place->topic, place->partition);
                continue;
            }
            int32_t *generation = &generations[found - partitions];
            if (found->owner == NOBODY || member->owned_generation > *generation) {
                found->owner = (int)i;
                *generation = member->owned_generation;
            }
            found->claimer = (int)i;
        }
    }
}

/* As the cooperative-sticky assignor does; all members of such a group have the same topics. */
static void assign_stickily(void) {
    struct place places[PLACES_MAX];
    struct sticky_partition partitions[PLACES_MAX];
    size_t count = 0;
    const struct member *first = group->members[0];
    for (size_t i = 0; i < first->topic_count; i++) {
        const struct topic *topic = topic_of(first, i);
        for (int32_t p = 0; topic != NULL && p < topic->partition_count; p++, count++) {
            snprintf(places[count].topic, sizeof places[count].topic, "%s", topic->name);
            places[count].partition = p;
            partitions[count] = (struct sticky_partition){NOBODY, NOBODY, NOBODY};
        }
    }
    note_claims(places, partitions, count);
    sticky_share(partitions, count, group->member_count);
    for (size_t i = 0; i < count; i++)
        if (partitions[i].taker != NOBODY)
            give(group->members[partitions[i].taker], places[i].topic, places[i].partition);
}

static void complete(void) {
    group->is_rebalancing = false;
    group->generation++;
    for (size_t i = 0; i < group->member_count; i++) group->members[i]->count = 0;
    const struct member *first = group->member_count > 0 ? group->members[0] : NULL;
    if (first != NULL) note_topics(first);
    for (size_t i = 0; first != NULL && i < first->topic_count; i++) {
        const struct topic *topic = topic_of(first, i);
        if (topic != NULL && !first->is_cooperative) assign_topic(topic);
    }
    if (first != NULL && first->is_cooperative) assign_stickily();
    cluster_changed();
}

/* The leader looks for it now and then. */
static bool have_topics_changed(void) {
    if (scheduler_now_ns() < group->next_look_ns) return false;
    group->next_look_ns = scheduler_now_ns() + LOOK_MS * 1000000ull;
    const struct member *first = group->member_count > 0 ? group->members[0] : NULL;
    if (first != NULL && is_away(first)) return false;
    for (size_t i = 0; first != NULL && i < first->topic_count; i++) {
        const struct topic *topic = topic_of(first, i);
        if (group->partition_counts[i] != (topic != NULL ? topic->partition_count : 0)) return true;
    }
    return false;
}

static bool have_all_joined(void) {
    for (size_t i = 0; i < group->member_count; i++)
        if (!group->members[i]->has_joined) return false;
    return true;
}

static void serve(void) {
    for (size_t i = 0; i < group->member_count;)
        if (is_over(group->members[i])) expel(group->members[i]);
        else i++;
    if (!group->is_rebalancing && have_topics_changed()) rebalance();
    if (!group->is_rebalancing) return;
    bool is_late = scheduler_now_ns() >= group->deadline_ns;
    for (size_t i = 0; is_late && i < group->member_count;)
        if (group->members[i]->has_joined) i++;
        else expel(group->members[i]);
    if (have_all_joined() && scheduler_now_ns() - group->since_ns >= JOIN_DELAY_MS * 1000000ull)
        complete();
}

void group_serve(void) {
    struct group *used = group;
    for (group = groups; group != NULL; group = group->next) serve();
    group = used;
}

enum group_standing group_stands(const struct member *member) {
    if (!member->is_in) return GROUP_GONE;
    if (!member->group->is_rebalancing) return GROUP_MEMBER;
    return member->has_joined ? GROUP_WAITING : GROUP_REJOIN;
}

void group_rejoin(struct member *member) {
    group = member->group;
    rebalance();
    member->has_joined = true;
    cluster_changed();
}

bool group_is_stable(void) {
    return !group->is_rebalancing && group->member_count > 0;
}

const struct member *group_member_at(size_t i) {
    return i < group->member_count ? group->members[i] : NULL;
}

rd_kafka_topic_partition_list_t *group_assignment(const struct member *member) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)member->count);
    for (size_t i = 0; i < member->count; i++)
        rd_kafka_topic_partition_list_add(
            list, member->assigned[i].topic, member->assigned[i].partition);
    return list;
}

/* ---- offsets ---- */

rd_kafka_resp_err_t group_check(
    const char *id, const char *instance, int32_t generation, bool is_transactional) {
    group_serve();
    if (generation < 0 && id[0] == 0 && (instance[0] == 0 || group->member_count == 0))
        return is_transactional || group->member_count == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR
                                                            : RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    const struct member *found = NULL;
    for (size_t i = 0; i < group->member_count; i++)
        if (strcmp(group->members[i]->id, id) == 0) found = group->members[i];
    if (found == NULL)
        return find_instance(instance) != NULL ? RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID
                                               : RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    if (generation != group->generation) return RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* What ended transactions have brought takes the place of what was committed before. All stay in
 * their order: what was committed before stands before it. */
static void settle(void) {
    size_t kept = 0;
    for (size_t i = 0; i < group->offset_count; i++) {
        struct committed pending = group->offsets[i];
        if (pending.txn == NULL || pending.txn->state == TXN_OPEN) {
            group->offsets[kept++] = pending;
            continue;
        }
        if (pending.txn->state == TXN_ABORTED) continue;
        pending.txn = NULL;
        for (size_t k = 0; k < kept; k++)
            if (group->offsets[k].txn == NULL && group->offsets[k].partition == pending.partition &&
                strcmp(group->offsets[k].topic, pending.topic) == 0) {
                kept--;
                memmove(&group->offsets[k], &group->offsets[k + 1],
                    (kept - k) * sizeof group->offsets[0]);
                break;
            }
        group->offsets[kept++] = pending;
    }
    group->offset_count = kept;
}

static struct committed *find_committed(
    const char *topic, int32_t partition, const struct txn *txn) {
    for (size_t i = 0; i < group->offset_count; i++) {
        struct committed *committed = &group->offsets[i];
        if (committed->txn == txn && committed->partition == partition &&
            strcmp(committed->topic, topic) == 0)
            return committed;
    }
    return NULL;
}

rd_kafka_resp_err_t group_commit(
    const rd_kafka_topic_partition_list_t *partitions, const struct txn *txn) {
    settle();
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        p->err = RD_KAFKA_RESP_ERR_NO_ERROR;
        if (cluster_find_log(p->topic, p->partition) == NULL) {
            p->err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
            continue;
        }
        struct committed *committed = find_committed(p->topic, p->partition, txn);
        if (group->tells)
            fprintf(stderr, "%10.3f process %d commits %s [%d] at %lld, in %p\n",
                (double)scheduler_now_ns() / 1e9, (int)getpid(), p->topic, (int)p->partition,
                (long long)p->offset, (const void *)txn);
        if (committed == NULL) {
            if (group->offset_count == CLUSTER_OFFSETS) abort();
            committed = &group->offsets[group->offset_count++];
        }
        void *metadata = scheduler_alloc(p->metadata_size + 1);
        if (p->metadata_size > 0) memcpy(metadata, p->metadata, p->metadata_size);
        *committed = (struct committed){.partition = p->partition,
            .offset = p->offset,
            .metadata = metadata,
            .metadata_size = p->metadata_size,
            .txn = txn};
        snprintf(committed->topic, sizeof committed->topic, "%s", p->topic);
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool is_pending(const char *topic, int32_t partition) {
    for (size_t i = 0; i < group->offset_count; i++)
        if (group->offsets[i].txn != NULL && group->offsets[i].partition == partition &&
            strcmp(group->offsets[i].topic, topic) == 0)
            return true;
    return false;
}

void group_fetch(rd_kafka_topic_partition_list_t *partitions, bool is_stable) {
    settle();
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        const struct committed *committed = find_committed(p->topic, p->partition, NULL);
        free(p->metadata);
        p->metadata = NULL;
        p->metadata_size = 0;
        p->offset = NO_OFFSET;
        p->err = is_stable && is_pending(p->topic, p->partition)
                     ? RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT
                     : RD_KAFKA_RESP_ERR_NO_ERROR;
        if (committed == NULL || p->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        p->offset = committed->offset;
        if (committed->metadata_size == 0) continue;
        p->metadata = malloc(committed->metadata_size);
        if (p->metadata == NULL) abort();
        memcpy(p->metadata, committed->metadata, committed->metadata_size);
        p->metadata_size = committed->metadata_size;
    }
}

static void forget_topic(struct group *of, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < of->offset_count; i++)
        if (strcmp(of->offsets[i].topic, name) != 0) of->offsets[kept++] = of->offsets[i];
    of->offset_count = kept;
}

void cluster_delete_topic(const char *name) {
    struct topic *topic = cluster_find_topic(name);
    if (topic == NULL) return;
    topic->exists = false;
    for (struct group *of = groups; of != NULL; of = of->next) forget_topic(of, name);
    cluster_changed();
}

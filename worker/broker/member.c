#include "broker/member.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/assignment.h"

enum { NAME_SIZE = 512, NO_GENERATION = -1, LOOK_MS = 50, ATTENTION_MS = 10 };

struct member {
    bool is_in_group;
    pthread_mutex_t lock; /* guards `id` */
    char *id;             /* as librdkafka gave it; NULL: nothing was assigned yet */
    uint64_t next_look_ns;
    bool was_over;   /* when it was last looked */
    bool keeps_lost; /* partitions of the member that it was before */
};

struct member *member_create(bool is_in_group) {
    struct member *member = calloc(1, sizeof *member);
    if (member == NULL) return NULL;
    member->is_in_group = is_in_group;
    pthread_mutex_init(&member->lock, NULL);
    return member;
}

static void free_id(char *id) {
    if (id != NULL) rd_kafka_mem_free(NULL, id);
}

void member_destroy(struct member *member) {
    if (member == NULL) return;
    free_id(member->id);
    pthread_mutex_destroy(&member->lock);
    free(member);
}

static bool is_same_id(const char *id, const char *other) {
    return id != NULL && other != NULL && id[0] != 0 && strcmp(id, other) == 0;
}

static bool has_partitions(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *partitions = assignment_get(client);
    bool ret = partitions->cnt > 0;
    rd_kafka_topic_partition_list_destroy(partitions);
    return ret;
}

void member_enter(struct member *member, rd_kafka_t *client) {
    bool keeps = has_partitions(client);
    char *id = rd_kafka_memberid(client);
    pthread_mutex_lock(&member->lock);
    char *unused = keeps ? id : member->id;
    member->keeps_lost = keeps && !is_same_id(id, member->id);
    if (!keeps) member->id = id;
    pthread_mutex_unlock(&member->lock);
    free_id(unused);
    member->next_look_ns = 0;
}

static bool is_equal(const rd_kafka_consumer_group_metadata_t *group,
    const rd_kafka_consumer_group_metadata_t *other) {
    void *bytes[2] = {NULL, NULL};
    size_t sizes[2];
    rd_kafka_error_t *errors[] = {
        rd_kafka_consumer_group_metadata_write(group, &bytes[0], &sizes[0]),
        rd_kafka_consumer_group_metadata_write(other, &bytes[1], &sizes[1])};
    bool ret = errors[0] == NULL && errors[1] == NULL && sizes[0] == sizes[1] &&
               memcmp(bytes[0], bytes[1], sizes[0]) == 0;
    for (int i = 0; i < 2; i++) {
        if (errors[i] != NULL) rd_kafka_error_destroy(errors[i]);
        if (bytes[i] != NULL) rd_kafka_mem_free(NULL, bytes[i]);
    }
    return ret;
}

/* librdkafka 2.0.2 does not tell the generation, so what it says of the member is compared with
 * what it would say without one. */
static bool has_generation(
    rd_kafka_t *client, const char *id, const rd_kafka_consumer_group_metadata_t *group) {
    char name[NAME_SIZE], instance[NAME_SIZE];
    client_read_conf(client, "group.id", name, sizeof name);
    client_read_conf(client, "group.instance.id", instance, sizeof instance); /* "": dynamic */
    rd_kafka_consumer_group_metadata_t *without = rd_kafka_consumer_group_metadata_new_with_genid(
        name, NO_GENERATION, id, instance[0] != 0 ? instance : NULL);
    bool ret = !is_equal(group, without);
    rd_kafka_consumer_group_metadata_destroy(without);
    return ret;
}

/* Call with the lock held. */
static bool is_same(const struct member *member, rd_kafka_t *client,
    const rd_kafka_consumer_group_metadata_t *group) {
    char *id = rd_kafka_memberid(client);
    bool ret = is_same_id(id, member->id) && has_generation(client, id, group);
    free_id(id);
    return ret;
}

/* The name is read last: a client that has another one meanwhile has given its partitions back. */
rd_kafka_consumer_group_metadata_t *member_get(struct member *member, rd_kafka_t *client) {
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(client);
    if (group == NULL || !member->is_in_group) return group;
    pthread_mutex_lock(&member->lock);
    bool is_ours = is_same(member, client, group) && !rd_kafka_assignment_lost(client);
    pthread_mutex_unlock(&member->lock);
    if (is_ours) return group;
    rd_kafka_consumer_group_metadata_destroy(group);
    return NULL;
}

bool member_is_over(struct member *member, rd_kafka_t *client) {
    if (rd_kafka_assignment_lost(client)) return true;
    if (clock_ns() < member->next_look_ns) return member->was_over;
    member->next_look_ns = clock_ns_in(LOOK_MS);
    rd_kafka_consumer_group_metadata_t *group = member_get(member, client);
    if (group != NULL) rd_kafka_consumer_group_metadata_destroy(group);
    member->was_over = group == NULL;
    return member->was_over;
}

bool member_has_to_renew(
    struct member *member, rd_kafka_t *client, const struct client_events *events) {
    bool keeps_lost = member->keeps_lost;
    member->keeps_lost = false;
    if (!keeps_lost || !has_partitions(client)) return false;
    client_say(events, LOG_WARN,
        "leaves the group and joins it again: the group went on without it while partitions moved");
    return true;
}

/* ---- leaving ---- */

static bool is_fenced(rd_kafka_t *client) {
    return rd_kafka_fatal_error(client, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/*
 * Rebalances are read as events, because messages that still arrive would end a poll for callbacks.
 */
static void serve_closing(
    rd_kafka_t *client, rd_kafka_queue_t *queue, member_on_rebalance *on_rebalance, void *opaque) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ATTENTION_MS);
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
        on_rebalance(client, rd_kafka_event_error(event),
            rd_kafka_event_topic_partition_list(event), opaque);
    rd_kafka_event_destroy(event);
}

/*
 * A static member leaves its group only if it unsubscribes, and only if that is done before the
 * client closes. Afterwards the member has no name any more.
 */
static void unsubscribe(
    rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque), void *opaque) {
    rd_kafka_unsubscribe(client);
    while (!is_fenced(client) && clock_ns() < deadline_ns) {
        char *member = rd_kafka_memberid(client);
        bool is_member = member != NULL && member[0] != 0;
        free_id(member);
        if (!is_member) return;
        drop_next(opaque);
    }
}

/* rd_kafka_consumer_close() would wait for brokers that are away, and for answers to a member that
 * another one has replaced. */
void member_leave(rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque),
    member_on_rebalance *on_rebalance, void *opaque) {
    unsubscribe(client, deadline_ns, drop_next, opaque);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(client, queue);
    if (error != NULL) rd_kafka_error_destroy(error);
    while (!rd_kafka_consumer_closed(client) && !is_fenced(client) && clock_ns() < deadline_ns)
        serve_closing(client, queue, on_rebalance, opaque);
    rd_kafka_queue_destroy(queue);
}

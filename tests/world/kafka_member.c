/* Consumers as members of a group: what it gives them, and what they give back (kafka.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/kafka.h"
#include "world/leaks.h"
#include "world/scheduler.h"

/* A client that is closing, or was fenced, calls back no more. */
static bool is_ending(const rd_kafka_t *client) {
    return client->closing_queue != NULL || client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void call_back(
    rd_kafka_t *client, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *partitions) {
    client->awaits =
        code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? AWAITS_ASSIGNING : AWAITS_UNASSIGNING;
    if (client->closing_queue == NULL) {
        client->on_rebalance(client, code, partitions, client->opaque);
        rd_kafka_topic_partition_list_destroy(partitions);
        return;
    }
    rd_kafka_event_t *event = calloc(1, sizeof *event);
    if (event == NULL) abort();
    *event = (rd_kafka_event_t){.kind = EVENT_REBALANCE, .code = code, .partitions = partitions};
    kafka_queue_add(client->closing_queue, event);
}

/* ---- what its caller answers ---- */

rd_kafka_resp_err_t rd_kafka_assign(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions) {
    bool is_in_group = client->member != NULL || client->owned->cnt > 0;
    if (client->is_cooperative && is_in_group && !is_ending(client))
        return RD_KAFKA_RESP_ERR__STATE;
    kafka_forget_all(client);
    client->is_lost = false;
    if (partitions != NULL) kafka_read(client, partitions);
    client->awaits = AWAITS_NOTHING;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void own_nothing(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_destroy(client->owned);
    client->owned = rd_kafka_topic_partition_list_new(0);
    if (client->added != NULL) rd_kafka_topic_partition_list_destroy(client->added);
    client->added = NULL;
    client->rejoins = false;
}

/* Whatever is asked of a client that ends, it gives all back. */
static rd_kafka_error_t *unassign_all(rd_kafka_t *client) {
    kafka_forget_all(client);
    own_nothing(client);
    client->is_lost = false;
    client->awaits = AWAITS_NOTHING;
    return NULL;
}

rd_kafka_error_t *rd_kafka_incremental_assign(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions) {
    if (!client->is_cooperative) return kafka_error(RD_KAFKA_RESP_ERR__STATE, false, false);
    if (is_ending(client)) return unassign_all(client);
    for (int i = 0; i < partitions->cnt; i++)
        if (kafka_reads(client, &partitions->elems[i]))
            return kafka_error(RD_KAFKA_RESP_ERR__CONFLICT, false, false);
    kafka_read(client, partitions);
    client->is_lost = false;
    if (client->awaits == AWAITS_ASSIGNING) client->awaits = AWAITS_NOTHING;
    return NULL;
}

rd_kafka_error_t *rd_kafka_incremental_unassign(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions) {
    if (!client->is_cooperative) return kafka_error(RD_KAFKA_RESP_ERR__STATE, false, false);
    if (is_ending(client)) return unassign_all(client);
    for (int i = 0; i < partitions->cnt; i++)
        if (!kafka_reads(client, &partitions->elems[i]))
            return kafka_error(RD_KAFKA_RESP_ERR__INVALID_ARG, false, false);
    for (int i = 0; i < partitions->cnt; i++) kafka_forget(client, &partitions->elems[i]);
    client->is_lost = false;
    if (client->awaits == AWAITS_UNASSIGNING) client->awaits = AWAITS_NOTHING;
    return NULL;
}

const char *rd_kafka_rebalance_protocol(rd_kafka_t *client) {
    return client->is_cooperative ? "COOPERATIVE" : "EAGER";
}

/* ---- requests ---- */

/* Tells of each topic that is missing when it was not before. False: all are missing. */
static bool look_for_topics(rd_kafka_t *client) {
    bool is_any = false;
    client->next_look_ns =
        scheduler_now_ns() + kafka_number(client, "topic.metadata.refresh.interval.ms") * 1000000u;
    for (int i = 0; i < client->subscription->cnt; i++) {
        rd_kafka_topic_t *topic = kafka_topic(client, client->subscription->elems[i].topic);
        bool was_missing = topic->is_missing;
        topic->is_missing = cluster_find_topic(topic->name) == NULL;
        if (topic->is_missing && !was_missing) kafka_tell_missing(client, topic->name);
        is_any = is_any || !topic->is_missing;
    }
    return is_any;
}

static uint64_t beat_ns(const rd_kafka_t *client) {
    return kafka_number(client, "heartbeat.interval.ms") * 1000000u;
}

static void join(rd_kafka_t *client) {
    char instance[KAFKA_ID_SIZE];
    char *topics[CLUSTER_TOPICS];
    rd_kafka_resp_err_t code = kafka_refusal(REQUEST_JOIN_GROUP);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka_tell_error(client, code);
        return;
    }
    client->next_beat_ns = scheduler_now_ns() + beat_ns(client);
    group_use(client->group);
    kafka_text(client, "group.instance.id", instance, sizeof instance);
    for (int i = 0; i < client->subscription->cnt; i++)
        topics[i] = client->subscription->elems[i].topic;
    client->member =
        group_join(getpid(), instance, (uint32_t)kafka_number(client, "session.timeout.ms"),
            (uint32_t)kafka_number(client, "max.poll.interval.ms"), topics,
            (size_t)client->subscription->cnt);
    client->generation = -1;
}

/* A heartbeat may be refused to a member that its coordinator was told to know no more. */
static void beat(rd_kafka_t *client) {
    if (client->member == NULL || scheduler_now_ns() < client->next_beat_ns) return;
    client->next_beat_ns = scheduler_now_ns() + beat_ns(client);
    if (cluster_refusal(REQUEST_HEARTBEAT) == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
        group_leave(client->member);
}

/* A static member leaves only if it is told to before it closes. */
static void leave(rd_kafka_t *client, bool is_closing) {
    char instance[KAFKA_ID_SIZE];
    kafka_text(client, "group.instance.id", instance, sizeof instance);
    bool stays = is_closing && instance[0] != 0;
    if (client->member != NULL) (stays ? group_abandon : group_leave)(client->member);
    client->member = NULL;
    client->generation = -1;
}

/* What the next heartbeat tells. librdkafka tells nobody that partitions are lost while they are
 * being given or taken. */
static void lose_membership(rd_kafka_t *client) {
    char instance[KAFKA_ID_SIZE];
    kafka_text(client, "group.instance.id", instance, sizeof instance);
    group_use(client->group);
    rd_kafka_resp_err_t code =
        group_check(group_member_id(client->member), instance, client->generation, false);
    if (client->awaits == AWAITS_NOTHING && !client->is_cooperative)
        client->is_lost = client->reading_count > 0;
    client->member = NULL;
    client->generation = -1;
    if (code != RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) return;
    client->fatal = code;
    kafka_tell_error(client, RD_KAFKA_RESP_ERR__FATAL);
}

/* ---- eager rebalances: each begins with giving all back ---- */

static void give_back(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *partitions;
    (void)rd_kafka_assignment(client, &partitions);
    call_back(client, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS, partitions);
}

static void take_assignment(rd_kafka_t *client) {
    client->generation = group_member_generation(client->member);
    call_back(client, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, group_assignment(client->member));
}

static bool ends(const rd_kafka_t *client) {
    return client->closing_queue != NULL || client->subscription == NULL;
}

/* The end of a subscription, whether there is another one or not. */
static void end_subscription(rd_kafka_t *client) {
    leave(client, client->closing_queue != NULL);
    client->is_closed = client->closing_queue != NULL;
    if (client->is_closed) (void)leaks_note(client, __builtin_return_address(0));
    client->has_unsubscribed = client->rejoins = false;
}

static void serve_eager(rd_kafka_t *client, enum group_standing standing) {
    bool is_over = ends(client) || client->has_unsubscribed;
    bool has_to_give = is_over || standing == GROUP_GONE || standing == GROUP_REJOIN;
    if (has_to_give && client->reading_count > 0) {
        give_back(client);
    } else if (is_over) {
        end_subscription(client);
    } else if (standing == GROUP_GONE) {
        if (client->fatal == RD_KAFKA_RESP_ERR_NO_ERROR && look_for_topics(client)) join(client);
    } else if (standing == GROUP_REJOIN) {
        group_rejoin(client->member);
    } else if (standing == GROUP_MEMBER &&
               client->generation != group_member_generation(client->member)) {
        take_assignment(client);
    }
}

/* ---- cooperative rebalances: members keep what they have, and tell the group of it ---- */

/* What is in the first list, and not in the other. */
static rd_kafka_topic_partition_list_t *subtract(
    const rd_kafka_topic_partition_list_t *from, const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *ret = rd_kafka_topic_partition_list_copy(from);
    for (int i = 0; i < list->cnt; i++)
        rd_kafka_topic_partition_list_del(ret, list->elems[i].topic, list->elems[i].partition);
    return ret;
}

/* Takes the list. `rejoins`: once the caller has answered. Meanwhile nothing is fetched, also of
 * partitions that stay. */
static void change(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, bool rejoins) {
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
            rd_kafka_topic_partition_list_add(client->owned, p->topic, p->partition);
        else rd_kafka_topic_partition_list_del(client->owned, p->topic, p->partition);
    }
    client->rejoins = rejoins;
    kafka_rewind(client);
    call_back(client, code, partitions);
}

static void take_back(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions, bool is_lost) {
    client->is_lost = is_lost;
    change(client, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS,
        rd_kafka_topic_partition_list_copy(partitions), true);
}

/* What is to be given back goes first; then comes what is new, and the member joins again, so that
 * others get what it gave back. */
static void take_changes(rd_kafka_t *client) {
    client->generation = client->owned_generation = group_member_generation(client->member);
    client->is_joining = false;
    rd_kafka_topic_partition_list_t *all = group_assignment(client->member);
    rd_kafka_topic_partition_list_t *added = subtract(all, client->owned);
    rd_kafka_topic_partition_list_t *left = subtract(client->owned, all);
    rd_kafka_topic_partition_list_destroy(all);
    if (left->cnt > 0) {
        client->added = added;
        change(client, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS, left, false);
    } else {
        rd_kafka_topic_partition_list_destroy(left);
        change(client, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, added, false);
    }
}

/* True: there were some, which it gives back. */
static bool lose_missing_topics(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *missing = rd_kafka_topic_partition_list_new(0);
    for (int i = 0; i < client->owned->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &client->owned->elems[i];
        if (cluster_find_topic(p->topic) == NULL)
            rd_kafka_topic_partition_list_add(missing, p->topic, p->partition);
    }
    bool ret = missing->cnt > 0;
    if (ret) take_back(client, missing, true);
    rd_kafka_topic_partition_list_destroy(missing);
    return ret;
}

/* The answer to a JoinGroup may tell of it, too; then it joins with what it has. */
static void lose_cooperative_membership(rd_kafka_t *client) {
    lose_membership(client);
    if (client->is_joining && scheduler_draw(2) == 0) client->rejoins = true;
    client->is_joining = false;
    if (client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR) (void)unassign_all(client);
}

static void join_with_owned(rd_kafka_t *client) {
    if (client->member == NULL) join(client);
    else group_rejoin(client->member);
    if (client->member == NULL) return;
    group_claim(client->member, client->owned, client->owned_generation);
    client->rejoins = false;
    client->is_joining = true;
}

/* One step of rdkafka_cgrp.c of librdkafka 2.12. */
static void step(rd_kafka_t *client, enum group_standing standing) {
    rd_kafka_topic_partition_list_t *added = client->added;
    bool is_over = ends(client) || client->has_unsubscribed;
    bool is_lost = client->member == NULL && !client->rejoins;
    if (added != NULL) {
        client->added = NULL;
        change(client, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, added, true);
    } else if (client->owned->cnt > 0 && (is_over || is_lost)) {
        client->has_unsubscribed = false;
        take_back(client, client->owned, is_lost);
    } else if (is_over) {
        end_subscription(client);
    } else if (standing == GROUP_GONE) {
        if (client->fatal == RD_KAFKA_RESP_ERR_NO_ERROR && look_for_topics(client))
            join_with_owned(client);
    } else if (standing == GROUP_REJOIN || client->rejoins) {
        join_with_owned(client);
    } else if (standing == GROUP_MEMBER &&
               client->generation != group_member_generation(client->member)) {
        take_changes(client);
    }
}

static enum group_standing stands(const rd_kafka_t *client) {
    return client->member != NULL ? group_stands(client->member) : GROUP_GONE;
}

/* As far as it comes without an answer of its caller, or of the group. */
static void serve_cooperative(rd_kafka_t *client) {
    do step(client, stands(client));
    while (client->awaits == AWAITS_NOTHING &&
           (client->added != NULL || (client->rejoins && client->member != NULL)));
}

/* ---- both ---- */

void kafka_consumer_serve(rd_kafka_t *client) {
    if (client->is_closed || kafka_is_down(client)) return;
    client->has_met_broker = true;
    beat(client);
    group_serve();
    producer_ids_serve();
    enum group_standing standing = stands(client);
    if (client->member != NULL && standing == GROUP_GONE)
        (client->is_cooperative ? lose_cooperative_membership : lose_membership)(client);
    if (client->awaits != AWAITS_NOTHING) return;
    if (client->subscription == NULL && client->member == NULL && client->closing_queue == NULL)
        return; /* it reads what it was told to, for no group */
    if (!ends(client) && scheduler_now_ns() >= client->next_look_ns) {
        (void)look_for_topics(client);
        if (client->is_cooperative && lose_missing_topics(client)) return;
    }
    if (!client->is_cooperative) serve_eager(client, standing);
    else serve_cooperative(client);
}

rd_kafka_resp_err_t rd_kafka_subscribe(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *topics) {
    client->subscription = rd_kafka_topic_partition_list_copy(topics);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Who subscribes again at once gives all back nevertheless. */
rd_kafka_resp_err_t rd_kafka_unsubscribe(rd_kafka_t *client) {
    if (client->subscription != NULL) rd_kafka_topic_partition_list_destroy(client->subscription);
    client->subscription = NULL;
    client->has_unsubscribed = true;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_subscription(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t **ret) {
    *ret = client->subscription != NULL ? rd_kafka_topic_partition_list_copy(client->subscription)
                                        : rd_kafka_topic_partition_list_new(0);
    (void)leaks_note(*ret, __builtin_return_address(0));
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

int rd_kafka_assignment_lost(rd_kafka_t *client) {
    return client->is_lost;
}

char *rd_kafka_memberid(const rd_kafka_t *client) {
    return strdup(client->member != NULL ? group_member_id(client->member) : "");
}

void kafka_member_begin(rd_kafka_t *client) {
    char strategy[256];
    kafka_text(client, "partition.assignment.strategy", strategy, sizeof strategy);
    client->is_cooperative = strstr(strategy, "cooperative") != NULL;
    client->owned = rd_kafka_topic_partition_list_new(0);
}

void kafka_member_end(rd_kafka_t *client, bool leaves) {
    if (leaves) leave(client, true);
    else if (client->member != NULL) group_abandon(client->member);
    (void)rd_kafka_unsubscribe(client);
    own_nothing(client);
    rd_kafka_topic_partition_list_destroy(client->owned);
}

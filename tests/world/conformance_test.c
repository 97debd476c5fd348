/*
 * Proves: what the cluster of a world answers, Apache Kafka answers. Each test runs against both:
 * linked with the functions of tests/world as world/conformance, and with librdkafka as
 * kafka/conformance. It uses what the worker uses of librdkafka.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crew.h"
#include "broker/kafka_harness.h"
#include "broker/produce_request.h"
#include "broker/topic_ids.h"
#include "support/at_once.h"
#include "support/wait.h"
#include "testing.h"

enum { TICK_MS = 10, SHORT_MS = 500 };

/* ---- clients ---- */

struct rig {
    rd_kafka_t *client;
    rd_kafka_resp_err_t report; /* of the last record that was sent */
    int rebalances;
    int added, taken; /* partitions, by cooperative rebalances */
    bool keeps;       /* what it is to give back, until its caller does it */
    rd_kafka_topic_partition_list_t *kept;
    int resets;
    int errors; /* that end the client */
    int sent_count, reported_count;
};

static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    struct rig *rig = context;
    bool is_assigned = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    rig->rebalances += is_assigned;
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = 0;
    assert_int_equal(
        rd_kafka_assign(client, is_assigned ? partitions : NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
}

static rd_kafka_resp_err_t code_of(rd_kafka_error_t *error) {
    rd_kafka_resp_err_t ret = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    return ret;
}

static void must(rd_kafka_error_t *error) {
    assert_int_equal(code_of(error), RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void on_change(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    struct rig *rig = context;
    assert_string_equal(rd_kafka_rebalance_protocol(client), "COOPERATIVE");
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = 0;
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rig->rebalances++;
        rig->added += partitions->cnt;
        must(rd_kafka_incremental_assign(client, partitions));
    } else {
        rig->taken += partitions->cnt;
        if (rig->keeps) rig->kept = rd_kafka_topic_partition_list_copy(partitions);
        else must(rd_kafka_incremental_unassign(client, partitions));
    }
}

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *text) {
    struct rig *rig = rd_kafka_opaque(client);
    if (strcmp(facility, "OFFSET") == 0 && strstr(text, "offset reset") != NULL) rig->resets++;
}

static void take_reports(struct rig *rig) {
    const rd_kafka_message_t *message;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rig->client);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TICK_MS);
    while (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR &&
           (message = rd_kafka_event_message_next(event)) != NULL) {
        rig->report = message->err;
        rig->reported_count++;
    }
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, key, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail_msg("%s: %s", key, why);
}

static void open_as(struct rig *rig, const struct broker *broker, rd_kafka_type_t type,
    const char *id, const char *strategy) {
    bool is_cooperative = strstr(strategy, "cooperative") != NULL;
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    *rig = (struct rig){0};
    set(conf, "bootstrap.servers", broker->bootstrap);
    rd_kafka_conf_set_opaque(conf, rig);
    if (type == RD_KAFKA_CONSUMER) {
        set(conf, "group.id", broker->group);
        set(conf, "enable.auto.commit", "false");
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "partition.assignment.strategy", strategy);
        set(conf, "topic.metadata.refresh.interval.ms", "1000");
        if (id != NULL) set(conf, "group.instance.id", id);
        rd_kafka_conf_set_rebalance_cb(conf, is_cooperative ? on_change : on_rebalance);
        rd_kafka_conf_set_log_cb(conf, on_log);
    } else {
        if (id != NULL) set(conf, "transactional.id", id);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    }
    rig->client = rd_kafka_new(type, conf, why, sizeof why);
    if (rig->client == NULL) fail_msg("%s", why);
    if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(rig->client);
}

/* `id`: of a static member, or of transactions; NULL: none. */
static void open_client(
    struct rig *rig, const struct broker *broker, rd_kafka_type_t type, const char *id) {
    open_as(rig, broker, type, id, "range");
}

static void open_cooperative(struct rig *rig, const struct broker *broker, const char *id) {
    open_as(rig, broker, RD_KAFKA_CONSUMER, id, "cooperative-sticky");
}

static void close_client(struct rig *rig) {
    rd_kafka_destroy(rig->client);
}

static rd_kafka_topic_partition_list_t *one(const char *topic, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
    return list;
}

/* ---- members ---- */

static void subscribe(struct rig *rig, const struct broker *broker) {
    rd_kafka_topic_partition_list_t *topics = one(broker->jobs, RD_KAFKA_PARTITION_UA, 0);
    assert_int_equal(rd_kafka_subscribe(rig->client, topics), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(topics);
}

/* Messages are of no interest. */
static void poll_member(struct rig *rig) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(rig->client, TICK_MS);
    if (message == NULL) return;
    rig->errors += message->err == RD_KAFKA_RESP_ERR__FATAL;
    rd_kafka_message_destroy(message);
}

static void poll_for(struct rig *rig, int ms) {
    for (int waited_ms = 0; waited_ms < ms; waited_ms += TICK_MS) poll_member(rig);
}

static int count_assigned(struct rig *rig) {
    rd_kafka_topic_partition_list_t *list;
    poll_member(rig);
    assert_int_equal(rd_kafka_assignment(rig->client, &list), RD_KAFKA_RESP_ERR_NO_ERROR);
    int ret = list->cnt;
    rd_kafka_topic_partition_list_destroy(list);
    return ret;
}

TEST(members_share_partitions_and_one_that_leaves_gives_its_own_to_the_other) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, NULL);
    open_client(&second, &broker, RD_KAFKA_CONSUMER, NULL);
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 2, (void)0);
    subscribe(&second, &broker);
    WAIT_DOING(count_assigned(&second), ==, 1, poll_member(&first));
    assert_int_equal(count_assigned(&first), 1);
    close_client(&second);
    WAIT_DOING(count_assigned(&first), ==, 2, (void)0);
    close_client(&first);
    broker_stop(&broker);
}

TEST(a_static_member_that_comes_back_has_its_partitions_and_the_other_notices_nothing) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, "first");
    open_client(&second, &broker, RD_KAFKA_CONSUMER, "second");
    subscribe(&first, &broker);
    subscribe(&second, &broker);
    WAIT_DOING(count_assigned(&first) + count_assigned(&second), ==, 2, (void)0);
    WAIT_DOING(count_assigned(&first), ==, 1, poll_member(&second));
    WAIT_DOING(count_assigned(&second), ==, 1, poll_member(&first));
    int rebalances = second.rebalances;
    close_client(&first);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, "first");
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 1, poll_member(&second));
    for (int polls = 0; polls < 20; polls++) poll_member(&second); /* a rebalance would begin */
    assert_int_equal(second.rebalances, rebalances);
    close_client(&first);
    close_client(&second);
    broker_stop(&broker);
}

TEST(a_static_member_that_closes_stays_and_one_that_unsubscribes_leaves) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, "first");
    open_client(&second, &broker, RD_KAFKA_CONSUMER, "second");
    subscribe(&first, &broker);
    subscribe(&second, &broker);
    WAIT_DOING(count_assigned(&first), ==, 1, poll_member(&second));
    WAIT_DOING(count_assigned(&second), ==, 1, poll_member(&first));
    close_client(&first);
    poll_for(&second, SHORT_MS);
    assert_int_equal(count_assigned(&second), 1);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, "first");
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 1, poll_member(&second));
    assert_int_equal(rd_kafka_unsubscribe(first.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    WAIT_DOING(count_assigned(&second), ==, 2, poll_member(&first));
    close_client(&first);
    close_client(&second);
    broker_stop(&broker);
}

/* A static member that closes stays in its group. */
TEST(partitions_that_come_while_a_static_leader_is_away_are_handed_out_once_it_joins_anew) {
    struct broker broker;
    struct rig leader;
    broker_start(&broker, 1);
    open_client(&leader, &broker, RD_KAFKA_CONSUMER, "leader");
    subscribe(&leader, &broker);
    WAIT_DOING(count_assigned(&leader), ==, 1, (void)0);
    close_client(&leader);
    broker_add_partitions(&broker, 2);
    open_client(&leader, &broker, RD_KAFKA_CONSUMER, "leader");
    subscribe(&leader, &broker);
    WAIT_DOING(count_assigned(&leader), ==, 1, (void)0);
    poll_for(&leader, SHORT_MS);
    assert_int_equal(count_assigned(&leader), 1);
    assert_int_equal(rd_kafka_unsubscribe(leader.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    subscribe(&leader, &broker);
    WAIT_DOING(count_assigned(&leader), ==, 2, (void)0);
    close_client(&leader);
    broker_stop(&broker);
}

TEST(of_two_members_of_one_name_the_earlier_is_fenced) {
    struct broker broker;
    struct rig first, second;
    char reason[256];
    broker_start(&broker, 2);
    open_client(&first, &broker, RD_KAFKA_CONSUMER, "same");
    open_client(&second, &broker, RD_KAFKA_CONSUMER, "same");
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 2, (void)0);
    subscribe(&second, &broker);
    WAIT_DOING(count_assigned(&second), ==, 2, poll_member(&first));
    WAIT_DOING(first.errors, ==, 1, (poll_member(&first), poll_member(&second)));
    assert_int_equal(rd_kafka_fatal_error(first.client, reason, sizeof reason),
        RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
    WAIT_DOING(count_assigned(&first), ==, 0, poll_member(&second));
    assert_int_equal(count_assigned(&second), 2);
    close_client(&first);
    close_client(&second);
    broker_stop(&broker);
}

TEST(a_member_gets_partitions_that_are_added) {
    struct broker broker;
    struct rig rig;
    broker_start(&broker, 1);
    open_client(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    subscribe(&rig, &broker);
    WAIT_DOING(count_assigned(&rig), ==, 1, (void)0);
    broker_add_partitions(&broker, 3);
    WAIT_DOING(count_assigned(&rig), ==, 3, (void)0);
    close_client(&rig);
    broker_stop(&broker);
}

/* ---- members of cooperative groups ---- */

TEST(a_cooperative_member_keeps_its_share_when_another_one_comes_and_goes) {
    struct broker broker;
    struct rig first, second;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 4);
    open_cooperative(&first, &broker, NULL);
    open_cooperative(&second, &broker, NULL);
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 4, (void)0);
    subscribe(&second, &broker);
    WAIT_DOING(count_assigned(&second), ==, 2, poll_member(&first));
    assert_int_equal(count_assigned(&first), 2);
    assert_int_equal(first.taken, 2); /* and no more */
    assert_int_equal(first.added, 4);
    WAIT_DOING(first.rebalances, ==, 3, (poll_member(&first), poll_member(&second)));
    close_client(&second);
    WAIT_DOING(count_assigned(&first), ==, 4, (void)0);
    assert_int_equal(first.taken, 2);
    assert_int_equal(first.added, 6);
    close_client(&first);
    broker_stop(&broker);
}

TEST(a_cooperative_member_that_takes_its_time_to_give_back_holds_up_what_moves_alone) {
    struct broker broker;
    struct rig first, second;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 2);
    open_cooperative(&first, &broker, NULL);
    open_cooperative(&second, &broker, NULL);
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 2, (void)0);
    first.keeps = true;
    subscribe(&second, &broker);
    WAIT_DOING(first.taken, ==, 1, (poll_member(&first), poll_member(&second)));
    WAIT_DOING(second.rebalances, ==, 1, (poll_member(&first), poll_member(&second)));
    assert_int_equal(second.added, 0);
    for (int waited_ms = 0; waited_ms < SHORT_MS; waited_ms += TICK_MS) {
        poll_member(&first);
        assert_int_equal(count_assigned(&second), 0);
    }
    assert_false(rd_kafka_assignment_lost(first.client));
    assert_int_equal(rd_kafka_assign(first.client, NULL), RD_KAFKA_RESP_ERR__STATE);
    assert_int_equal(count_assigned(&first), 2);
    must(rd_kafka_incremental_unassign(first.client, first.kept));
    first.keeps = false;
    WAIT_DOING(second.added, ==, 1, (poll_member(&first), poll_member(&second)));
    assert_int_equal(count_assigned(&first), 1);
    rd_kafka_topic_partition_list_destroy(first.kept);
    close_client(&second);
    close_client(&first);
    broker_stop(&broker);
}

TEST(what_is_assigned_in_parts_is_assigned_once_and_taken_from_who_has_it) {
    struct broker broker;
    struct rig rig;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 1);
    open_cooperative(&rig, &broker, NULL);
    subscribe(&rig, &broker);
    WAIT_DOING(count_assigned(&rig), ==, 1, (void)0);
    rd_kafka_topic_partition_list_t *list = one(broker.jobs, 0, 0);
    assert_int_equal(
        code_of(rd_kafka_incremental_assign(rig.client, list)), RD_KAFKA_RESP_ERR__CONFLICT);
    list->elems[0].partition = 5;
    assert_int_equal(
        code_of(rd_kafka_incremental_unassign(rig.client, list)), RD_KAFKA_RESP_ERR__INVALID_ARG);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(count_assigned(&rig), 1);
    close_client(&rig);
    broker_stop(&broker);
}

/* Of a member's assignment, as Kafka writes it. */
static int count_partitions(struct slice bytes) {
    int16_t version, name_size;
    int32_t topics = 0, count, ret = 0;
    struct slice ignored;
    if (bytes.size == 0) return 0;
    assert_true(produce_take_16(&bytes, &version) && produce_take_32(&bytes, &topics));
    for (; topics > 0; topics--, ret += count)
        assert_true(produce_take_16(&bytes, &name_size) &&
                    slice_take(&bytes, (size_t)name_size, &ignored) &&
                    produce_take_32(&bytes, &count) &&
                    slice_take(&bytes, (size_t)count * sizeof count, &ignored));
    return ret;
}

/* How many partitions of the group's members are assigned as its coordinator tells; -1: it goes
 * through a rebalance. */
static int count_described(const struct broker *broker) {
    const struct rd_kafka_group_list *list;
    assert_int_equal(rd_kafka_list_groups(broker->client, broker->group, &list, KAFKA_PATIENCE_MS),
        RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(list->group_cnt, 1);
    const struct rd_kafka_group_info *group = &list->groups[0];
    int ret = 0;
    for (int i = 0; i < group->member_cnt; i++) {
        struct slice bytes = slice_of(
            group->members[i].member_assignment, (size_t)group->members[i].member_assignment_size);
        ret += count_partitions(bytes);
    }
    if (strcmp(group->state, "Stable") != 0) ret = -1;
    rd_kafka_group_list_destroy(list);
    return ret;
}

/* Nobody has what it was about to give back, and no rebalance comes by itself. */
TEST(a_static_member_that_dies_while_it_gives_back_leaves_that_to_nobody) {
    struct broker broker;
    struct rig first, second;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 2);
    open_cooperative(&first, &broker, "first");
    open_cooperative(&second, &broker, "second");
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 2, (void)0);
    WAIT_DOING(count_described(&broker), ==, 2, poll_member(&first));
    first.keeps = true;
    subscribe(&second, &broker);
    WAIT_DOING(first.taken, ==, 1, (poll_member(&first), poll_member(&second)));
    rd_kafka_topic_partition_list_destroy(first.kept);
    rd_kafka_destroy_flags(first.client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    open_cooperative(&first, &broker, "first");
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first), ==, 1, poll_member(&second));
    for (int waited_ms = 0; waited_ms < SHORT_MS; waited_ms += TICK_MS) {
        poll_member(&first);
        assert_int_equal(count_assigned(&second), 0);
    }
    assert_int_equal(count_described(&broker), 1);
    assert_int_equal(rd_kafka_unsubscribe(first.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    subscribe(&first, &broker);
    WAIT_DOING(count_assigned(&first) + count_assigned(&second), ==, 2, (void)0);
    WAIT_DOING(count_described(&broker), ==, 2, (poll_member(&first), poll_member(&second)));
    close_client(&first);
    close_client(&second);
    broker_stop(&broker);
}

/* ---- offsets ---- */

static void on_commit(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    *(rd_kafka_resp_err_t *)context = code;
}

static rd_kafka_resp_err_t commit(
    struct rig *rig, const struct broker *broker, int64_t offset, const char *text) {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rig->client);
    rd_kafka_topic_partition_list_t *list = one(broker->jobs, 0, offset);
    list->elems[0].metadata = strdup(text);
    list->elems[0].metadata_size = strlen(text);
    assert_int_equal(rd_kafka_commit_queue(rig->client, list, queue, on_commit, &code), 0);
    WAIT_DOING(code != RD_KAFKA_RESP_ERR__IN_PROGRESS, ==, true,
        rd_kafka_queue_poll_callback(queue, TICK_MS));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
    return code;
}

/* `text` is of what stands beside it. */
static int64_t committed(struct rig *rig, const struct broker *broker, char *text, size_t size) {
    rd_kafka_topic_partition_list_t *list = one(broker->jobs, 0, 0);
    rd_kafka_resp_err_t code;
    WAIT_FOR(code = rd_kafka_committed(rig->client, list, KAFKA_PATIENCE_MS), ==,
        RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t offset = list->elems[0].offset;
    snprintf(text, size, "%.*s", (int)list->elems[0].metadata_size,
        list->elems[0].metadata != NULL ? (const char *)list->elems[0].metadata : "");
    rd_kafka_topic_partition_list_destroy(list);
    return offset;
}

TEST(what_a_group_commits_is_there_with_its_text_until_the_topic_is_deleted) {
    struct broker broker;
    struct rig rig;
    char text[64];
    broker_start(&broker, 1);
    open_client(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    assert_int_equal(committed(&rig, &broker, text, sizeof text), RD_KAFKA_OFFSET_INVALID);
    assert_int_equal(commit(&rig, &broker, 7, "a text"), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(committed(&rig, &broker, text, sizeof text), 7);
    assert_string_equal(text, "a text");
    broker_recreate_jobs(&broker, 1);
    WAIT_FOR(committed(&rig, &broker, text, sizeof text), ==, RD_KAFKA_OFFSET_INVALID);
    close_client(&rig);
    broker_stop(&broker);
}

TEST(nobody_commits_beside_the_members_of_a_group) {
    struct broker broker;
    struct rig member, other;
    broker_start(&broker, 1);
    open_client(&member, &broker, RD_KAFKA_CONSUMER, NULL);
    open_client(&other, &broker, RD_KAFKA_CONSUMER, NULL);
    subscribe(&member, &broker);
    WAIT_DOING(count_assigned(&member), ==, 1, (void)0);
    assert_int_equal(commit(&member, &broker, 1, ""), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(commit(&other, &broker, 2, ""), RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    close_client(&other);
    close_client(&member);
    broker_stop(&broker);
}

/* ---- logs ---- */

static void ends_of(struct rig *rig, const struct broker *broker, int64_t *low, int64_t *high) {
    assert_int_equal(rd_kafka_query_watermark_offsets(
                         rig->client, broker->jobs, 0, low, high, KAFKA_PATIENCE_MS),
        RD_KAFKA_RESP_ERR_NO_ERROR);
}

TEST(the_ends_of_a_log_are_told_as_offsets_and_as_times) {
    struct broker broker;
    struct rig rig;
    int64_t low, high;
    broker_start(&broker, 1);
    open_client(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    broker_produce(&broker, 0, 0, 5);
    ends_of(&rig, &broker, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 5);
    broker_delete_records(&broker, 0, 2);
    ends_of(&rig, &broker, &low, &high);
    assert_int_equal(low, 2);
    rd_kafka_topic_partition_list_t *list = one(broker.jobs, 0, RD_KAFKA_OFFSET_BEGINNING);
    assert_int_equal(rd_kafka_offsets_for_times(rig.client, list, KAFKA_PATIENCE_MS), 0);
    assert_int_equal(list->elems[0].offset, 2);
    list->elems[0].offset = RD_KAFKA_OFFSET_END;
    assert_int_equal(rd_kafka_offsets_for_times(rig.client, list, KAFKA_PATIENCE_MS), 0);
    assert_int_equal(list->elems[0].offset, 5);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(rd_kafka_query_watermark_offsets(
                         rig.client, broker.jobs, 9, &low, &high, KAFKA_PATIENCE_MS),
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    close_client(&rig);
    broker_stop(&broker);
}

static void read_from(struct rig *rig, const struct broker *broker, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = one(broker->jobs, 0, offset);
    assert_int_equal(rd_kafka_assign(rig->client, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
}

/* -1: none has come yet. */
static int64_t take_offset(struct rig *rig) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(rig->client, TICK_MS);
    int64_t ret =
        message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? message->offset : -1;
    if (message != NULL) rd_kafka_message_destroy(message);
    return ret;
}

TEST(an_offset_beyond_the_log_is_reset_and_told_in_the_log_of_the_client) {
    struct broker broker;
    struct rig rig;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 3);
    open_client(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    read_from(&rig, &broker, 9);
    WAIT_DOING(take_offset(&rig), ==, 0, (void)0);
    assert_int_equal(rig.resets, 1);
    close_client(&rig);
    broker_stop(&broker);
}

TEST(a_topic_that_is_created_anew_has_another_id) {
    struct broker broker;
    struct rig rig;
    struct topic_ids ids = {0};
    char before[TOPIC_ID_SIZE];
    broker_start(&broker, 1);
    open_client(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rig.client);
    rd_kafka_topic_partition_list_t *list = one(broker.jobs, 0, 0);
    for (int i = 0; i < 2; i++) {
        if (!topic_ids_ask(rig.client, list, KAFKA_PATIENCE_MS, queue)) skip(); /* before 2.3 */
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, KAFKA_PATIENCE_MS);
        assert_true(topic_ids_take(&ids, rig.client, event));
        rd_kafka_event_destroy(event);
        if (i > 0) break;
        snprintf(before, sizeof before, "%s", topic_ids_get(&ids, broker.jobs));
        broker_recreate_jobs(&broker, 1);
    }
    assert_true(topic_ids_differ(before, topic_ids_get(&ids, broker.jobs)));
    topic_ids_fini(&ids);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
    close_client(&rig);
    broker_stop(&broker);
}

/* ---- transactions ---- */

static void begin(struct rig *rig) {
    assert_int_equal(code_of(rd_kafka_begin_transaction(rig->client)), 0);
}

/* The id of all that write in transactions here is that of the group. */
static void open_transactions(struct rig *rig, const struct broker *broker) {
    open_client(rig, broker, RD_KAFKA_PRODUCER, broker->group);
    WAIT_FOR(code_of(rd_kafka_init_transactions(rig->client, KAFKA_PATIENCE_MS)), ==, 0);
}

static void send_record(struct rig *rig, const char *topic, size_t size) {
    static char bytes[2 << 20];
    const rd_kafka_vu_t parts[] = {{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {.ptr = bytes, .size = size}}};
    rd_kafka_error_t *error =
        rd_kafka_produceva(rig->client, parts, sizeof parts / sizeof parts[0]);
    rig->sent_count++;
    assert_int_equal(code_of(error), 0);
    WAIT_DOING(rig->reported_count, ==, rig->sent_count, take_reports(rig));
}

static rd_kafka_resp_err_t commit_transaction(struct rig *rig) {
    return code_of(rd_kafka_commit_transaction(rig->client, KAFKA_PATIENCE_MS));
}

static void abort_transaction(struct rig *rig) {
    assert_int_equal(code_of(rd_kafka_abort_transaction(rig->client, KAFKA_PATIENCE_MS)), 0);
}

TEST(readers_see_what_is_committed_and_nothing_of_what_is_aborted_or_open) {
    struct broker broker;
    struct rig writer, reader;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    open_client(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
    begin(&writer);
    send_record(&writer, broker.jobs, 10); /* at 0, and its marker at 1 */
    abort_transaction(&writer);
    begin(&writer);
    send_record(&writer, broker.jobs, 10); /* at 2, and its marker at 3 */
    assert_int_equal(commit_transaction(&writer), 0);
    begin(&writer);
    send_record(&writer, broker.jobs, 10); /* at 4 */
    read_from(&reader, &broker, 0);
    int64_t offset = -1;
    WAIT_DOING(offset, ==, 2, offset = take_offset(&reader);
               assert_true(offset == -1 || offset == 2));
    int64_t low, high;
    ends_of(&reader, &broker, &low, &high);
    assert_int_equal(high, 4); /* the stable end */
    assert_int_equal(commit_transaction(&writer), 0);
    WAIT_DOING(take_offset(&reader), ==, 4, (void)0);
    close_client(&reader);
    close_client(&writer);
    broker_stop(&broker);
}

static rd_kafka_resp_err_t send_offset(struct rig *writer, const struct broker *broker,
    int64_t offset, rd_kafka_consumer_group_metadata_t *group) {
    rd_kafka_topic_partition_list_t *list = one(broker->jobs, 0, offset);
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(writer->client, list, group, KAFKA_PATIENCE_MS);
    rd_kafka_topic_partition_list_destroy(list);
    return code_of(error);
}

TEST(offsets_of_an_open_transaction_are_told_to_nobody_and_then_to_all) {
    struct broker broker;
    struct rig writer, reader;
    char text[64];
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    open_client(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    WAIT_FOR(send_offset(&writer, &broker, 3, group), ==, 0);
    rd_kafka_topic_partition_list_t *list = one(broker.jobs, 0, 0);
    assert_int_equal(
        rd_kafka_committed(reader.client, list, SHORT_MS), RD_KAFKA_RESP_ERR__TIMED_OUT);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(commit_transaction(&writer), 0);
    assert_int_equal(committed(&reader, &broker, text, sizeof text), 3);
    rd_kafka_consumer_group_metadata_destroy(group);
    close_client(&reader);
    close_client(&writer);
    broker_stop(&broker);
}

static rd_kafka_error_t *send_offset_to_new(struct rig *writer, const struct broker *broker,
    rd_kafka_consumer_group_metadata_t *group, int timeout_ms) {
    rd_kafka_topic_partition_list_t *list = one(broker->jobs, 1, 3);
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(writer->client, list, group, timeout_ms);
    rd_kafka_topic_partition_list_destroy(list);
    return error;
}

TEST(a_transaction_fails_whose_offsets_are_of_a_partition_that_does_not_come) {
    struct broker broker;
    struct rig writer;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    rd_kafka_error_t *error = send_offset_to_new(&writer, &broker, group, SHORT_MS);
    assert_true(rd_kafka_error_txn_requires_abort(error));
    assert_false(rd_kafka_error_is_retriable(error));
    assert_int_equal(code_of(error), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    abort_transaction(&writer);
    rd_kafka_consumer_group_metadata_destroy(group);
    close_client(&writer);
    broker_stop(&broker);
}

static void add_late(void *context, uint32_t index) {
    struct broker *broker = context;
    int64_t low, high;
    for (int waited_ms = 0; waited_ms < SHORT_MS; waited_ms += TICK_MS)
        (void)rd_kafka_query_watermark_offsets(
            broker->client, broker->jobs, 0, &low, &high, TICK_MS);
    broker_add_partitions(broker, 2);
}

TEST(offsets_of_a_partition_that_is_not_there_are_sent_until_it_is) {
    struct broker broker;
    struct rig writer, reader;
    struct crew *crew;
    struct error err;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    open_client(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    const struct crew_options options = {
        .name = "add", .count = 1, .run = add_late, .context = &broker};
    assert_int_equal(crew_start(&options, &crew, &err), ERR_OK);
    assert_int_equal(
        code_of(send_offset_to_new(&writer, &broker, group, KAFKA_PATIENCE_MS)), ERR_OK);
    crew_join(&crew);
    assert_int_equal(commit_transaction(&writer), 0);
    rd_kafka_topic_partition_list_t *list = one(broker.jobs, 1, 0);
    WAIT_FOR(rd_kafka_committed(reader.client, list, KAFKA_PATIENCE_MS), ==, 0);
    assert_int_equal(list->elems[0].offset, 3);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(group);
    close_client(&reader);
    close_client(&writer);
    broker_stop(&broker);
}

TEST(offsets_of_another_generation_or_of_an_unknown_member_end_a_transaction) {
    struct broker broker;
    struct rig writer, member;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    open_client(&member, &broker, RD_KAFKA_CONSUMER, NULL);
    subscribe(&member, &broker);
    WAIT_DOING(count_assigned(&member), ==, 1, (void)0);
    char *id = rd_kafka_memberid(member.client);
    rd_kafka_consumer_group_metadata_t *groups[] = {rd_kafka_consumer_group_metadata(member.client),
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, 0, id, NULL),
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, 1, "nobody", NULL),
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", "nobody"),
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL)};
    const rd_kafka_resp_err_t expected[] = {RD_KAFKA_RESP_ERR_NO_ERROR,
        RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
        RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, RD_KAFKA_RESP_ERR_NO_ERROR};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        begin(&writer);
        assert_int_equal(send_offset(&writer, &broker, 1, groups[i]), expected[i]);
        if (expected[i] == 0) assert_int_equal(commit_transaction(&writer), 0);
        else abort_transaction(&writer);
        rd_kafka_consumer_group_metadata_destroy(groups[i]);
    }
    rd_kafka_mem_free(member.client, id);
    close_client(&member);
    close_client(&writer);
    broker_stop(&broker);
}

TEST(a_producer_whose_id_another_one_takes_is_fenced) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 1);
    open_transactions(&first, &broker);
    begin(&first);
    send_record(&first, broker.jobs, 10);
    open_transactions(&second, &broker);
    assert_int_equal(commit_transaction(&first), RD_KAFKA_RESP_ERR__FENCED);
    assert_int_equal(
        rd_kafka_fatal_error(first.client, (char[64]){0}, 64), RD_KAFKA_RESP_ERR__FENCED);
    begin(&second);
    send_record(&second, broker.jobs, 10);
    assert_int_equal(commit_transaction(&second), 0);
    close_client(&first);
    close_client(&second);
    broker_stop(&broker);
}

TEST(a_record_that_is_too_large_is_refused_and_its_transaction_can_only_be_aborted) {
    struct broker broker;
    struct rig writer;
    broker_start(&broker, 1);
    broker_create_narrow_topic(&broker, "narrow", "2000");
    open_transactions(&writer, &broker);
    begin(&writer);
    send_record(&writer, "narrow", 1000);
    assert_int_equal(writer.report, RD_KAFKA_RESP_ERR_NO_ERROR);
    send_record(&writer, "narrow", 3000);
    assert_int_equal(writer.report, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rd_kafka_error_t *error = rd_kafka_commit_transaction(writer.client, KAFKA_PATIENCE_MS);
    assert_true(rd_kafka_error_txn_requires_abort(error));
    rd_kafka_error_destroy(error);
    abort_transaction(&writer);
    begin(&writer);
    assert_int_equal(commit_transaction(&writer), 0);
    close_client(&writer);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(members_share_partitions_and_one_that_leaves_gives_its_own_to_the_other),
    T(a_static_member_that_comes_back_has_its_partitions_and_the_other_notices_nothing),
    T(a_static_member_that_closes_stays_and_one_that_unsubscribes_leaves),
    T(partitions_that_come_while_a_static_leader_is_away_are_handed_out_once_it_joins_anew),
    T(of_two_members_of_one_name_the_earlier_is_fenced), T(a_member_gets_partitions_that_are_added),
    T(a_cooperative_member_keeps_its_share_when_another_one_comes_and_goes),
    T(a_cooperative_member_that_takes_its_time_to_give_back_holds_up_what_moves_alone),
    T(what_is_assigned_in_parts_is_assigned_once_and_taken_from_who_has_it),
    T(a_static_member_that_dies_while_it_gives_back_leaves_that_to_nobody),
    T(what_a_group_commits_is_there_with_its_text_until_the_topic_is_deleted),
    T(nobody_commits_beside_the_members_of_a_group),
    T(the_ends_of_a_log_are_told_as_offsets_and_as_times),
    T(an_offset_beyond_the_log_is_reset_and_told_in_the_log_of_the_client),
    T(a_topic_that_is_created_anew_has_another_id),
    T(readers_see_what_is_committed_and_nothing_of_what_is_aborted_or_open),
    T(offsets_of_an_open_transaction_are_told_to_nobody_and_then_to_all),
    T(a_transaction_fails_whose_offsets_are_of_a_partition_that_does_not_come),
    T(offsets_of_a_partition_that_is_not_there_are_sent_until_it_is),
    T(offsets_of_another_generation_or_of_an_unknown_member_end_a_transaction),
    T(a_producer_whose_id_another_one_takes_is_fenced),
    T(a_record_that_is_too_large_is_refused_and_its_transaction_can_only_be_aborted))

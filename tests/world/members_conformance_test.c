/*
 * Proves: what the groups of a world answer to their members, those of Apache Kafka answer. Each
 * test runs against both: linked with the functions of tests/world as world/members_conformance,
 * and with librdkafka as kafka/members_conformance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/produce_request.h"
#include "support/at_once.h"
#include "support/wait.h"
#include "testing.h"
#include "world/conformance_rig.h"

TEST(members_share_partitions_and_one_that_leaves_gives_its_own_to_the_other) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_open(&second, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 2, (void)0);
    rig_subscribe(&second, &broker);
    WAIT_DOING(rig_count_assigned(&second), ==, 1, rig_poll(&first));
    assert_int_equal(rig_count_assigned(&first), 1);
    rig_close(&second);
    WAIT_DOING(rig_count_assigned(&first), ==, 2, (void)0);
    rig_close(&first);
    broker_stop(&broker);
}

TEST(a_static_member_that_comes_back_has_its_partitions_and_the_other_notices_nothing) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, "first");
    rig_open(&second, &broker, RD_KAFKA_CONSUMER, "second");
    rig_subscribe(&first, &broker);
    rig_subscribe(&second, &broker);
    WAIT_DOING(rig_count_assigned(&first) + rig_count_assigned(&second), ==, 2, (void)0);
    WAIT_DOING(rig_count_assigned(&first), ==, 1, rig_poll(&second));
    WAIT_DOING(rig_count_assigned(&second), ==, 1, rig_poll(&first));
    int rebalances = second.rebalances;
    rig_close(&first);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, "first");
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 1, rig_poll(&second));
    for (int polls = 0; polls < 20; polls++) rig_poll(&second); /* a rebalance would begin */
    assert_int_equal(second.rebalances, rebalances);
    rig_close(&first);
    rig_close(&second);
    broker_stop(&broker);
}

TEST(a_static_member_that_closes_stays_and_one_that_unsubscribes_leaves) {
    struct broker broker;
    struct rig first, second;
    broker_start(&broker, 2);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, "first");
    rig_open(&second, &broker, RD_KAFKA_CONSUMER, "second");
    rig_subscribe(&first, &broker);
    rig_subscribe(&second, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 1, rig_poll(&second));
    WAIT_DOING(rig_count_assigned(&second), ==, 1, rig_poll(&first));
    rig_close(&first);
    rig_poll_for(&second, SHORT_MS);
    assert_int_equal(rig_count_assigned(&second), 1);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, "first");
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 1, rig_poll(&second));
    assert_int_equal(rd_kafka_unsubscribe(first.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    WAIT_DOING(rig_count_assigned(&second), ==, 2, rig_poll(&first));
    rig_close(&first);
    rig_close(&second);
    broker_stop(&broker);
}

/* A static member that closes stays in its group. */
TEST(partitions_that_come_while_a_static_leader_is_away_are_handed_out_once_it_joins_anew) {
    struct broker broker;
    struct rig leader;
    broker_start(&broker, 1);
    rig_open(&leader, &broker, RD_KAFKA_CONSUMER, "leader");
    rig_subscribe(&leader, &broker);
    WAIT_DOING(rig_count_assigned(&leader), ==, 1, (void)0);
    rig_close(&leader);
    broker_add_partitions(&broker, 2);
    rig_open(&leader, &broker, RD_KAFKA_CONSUMER, "leader");
    rig_subscribe(&leader, &broker);
    WAIT_DOING(rig_count_assigned(&leader), ==, 1, (void)0);
    rig_poll_for(&leader, SHORT_MS);
    assert_int_equal(rig_count_assigned(&leader), 1);
    assert_int_equal(rd_kafka_unsubscribe(leader.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_subscribe(&leader, &broker);
    WAIT_DOING(rig_count_assigned(&leader), ==, 2, (void)0);
    rig_close(&leader);
    broker_stop(&broker);
}

TEST(of_two_members_of_one_name_the_earlier_is_fenced) {
    struct broker broker;
    struct rig first, second;
    char reason[256];
    broker_start(&broker, 2);
    rig_open(&first, &broker, RD_KAFKA_CONSUMER, "same");
    rig_open(&second, &broker, RD_KAFKA_CONSUMER, "same");
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 2, (void)0);
    rig_subscribe(&second, &broker);
    WAIT_DOING(rig_count_assigned(&second), ==, 2, rig_poll(&first));
    WAIT_DOING(first.errors, ==, 1, (rig_poll(&first), rig_poll(&second)));
    assert_int_equal(rd_kafka_fatal_error(first.client, reason, sizeof reason),
        RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
    WAIT_DOING(rig_count_assigned(&first), ==, 0, rig_poll(&second));
    assert_int_equal(rig_count_assigned(&second), 2);
    rig_close(&first);
    rig_close(&second);
    broker_stop(&broker);
}

TEST(a_member_gets_partitions_that_are_added) {
    struct broker broker;
    struct rig rig;
    broker_start(&broker, 1);
    rig_open(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_subscribe(&rig, &broker);
    WAIT_DOING(rig_count_assigned(&rig), ==, 1, (void)0);
    broker_add_partitions(&broker, 3);
    WAIT_DOING(rig_count_assigned(&rig), ==, 3, (void)0);
    rig_close(&rig);
    broker_stop(&broker);
}

/* ---- members of cooperative groups ---- */

TEST(a_cooperative_member_keeps_its_share_when_another_one_comes_and_goes) {
    struct broker broker;
    struct rig first, second;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 4);
    rig_open_cooperative(&first, &broker, NULL);
    rig_open_cooperative(&second, &broker, NULL);
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 4, (void)0);
    rig_subscribe(&second, &broker);
    WAIT_DOING(rig_count_assigned(&second), ==, 2, rig_poll(&first));
    assert_int_equal(rig_count_assigned(&first), 2);
    assert_int_equal(first.taken, 2); /* and no more */
    assert_int_equal(first.added, 4);
    WAIT_DOING(first.rebalances, ==, 3, (rig_poll(&first), rig_poll(&second)));
    rig_close(&second);
    WAIT_DOING(rig_count_assigned(&first), ==, 4, (void)0);
    assert_int_equal(first.taken, 2);
    assert_int_equal(first.added, 6);
    rig_close(&first);
    broker_stop(&broker);
}

TEST(a_cooperative_member_that_takes_its_time_to_give_back_holds_up_what_moves_alone) {
    struct broker broker;
    struct rig first, second;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 2);
    rig_open_cooperative(&first, &broker, NULL);
    rig_open_cooperative(&second, &broker, NULL);
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 2, (void)0);
    first.keeps = true;
    rig_subscribe(&second, &broker);
    WAIT_DOING(first.taken, ==, 1, (rig_poll(&first), rig_poll(&second)));
    WAIT_DOING(second.rebalances, ==, 1, (rig_poll(&first), rig_poll(&second)));
    assert_int_equal(second.added, 0);
    for (int waited_ms = 0; waited_ms < SHORT_MS; waited_ms += TICK_MS) {
        rig_poll(&first);
        assert_int_equal(rig_count_assigned(&second), 0);
    }
    assert_false(rd_kafka_assignment_lost(first.client));
    assert_int_equal(rd_kafka_assign(first.client, NULL), RD_KAFKA_RESP_ERR__STATE);
    assert_int_equal(rig_count_assigned(&first), 2);
    rig_must(rd_kafka_incremental_unassign(first.client, first.kept));
    first.keeps = false;
    WAIT_DOING(second.added, ==, 1, (rig_poll(&first), rig_poll(&second)));
    assert_int_equal(rig_count_assigned(&first), 1);
    rd_kafka_topic_partition_list_destroy(first.kept);
    rig_close(&second);
    rig_close(&first);
    broker_stop(&broker);
}

TEST(what_is_assigned_in_parts_is_assigned_once_and_taken_from_who_has_it) {
    struct broker broker;
    struct rig rig;
    if (!kafka_cooperates()) skip();
    broker_start(&broker, 1);
    rig_open_cooperative(&rig, &broker, NULL);
    rig_subscribe(&rig, &broker);
    WAIT_DOING(rig_count_assigned(&rig), ==, 1, (void)0);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker.jobs, 0, 0);
    assert_int_equal(
        rig_code_of(rd_kafka_incremental_assign(rig.client, list)), RD_KAFKA_RESP_ERR__CONFLICT);
    list->elems[0].partition = 5;
    assert_int_equal(rig_code_of(rd_kafka_incremental_unassign(rig.client, list)),
        RD_KAFKA_RESP_ERR__INVALID_ARG);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(rig_count_assigned(&rig), 1);
    rig_close(&rig);
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
    rig_open_cooperative(&first, &broker, "first");
    rig_open_cooperative(&second, &broker, "second");
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 2, (void)0);
    WAIT_DOING(count_described(&broker), ==, 2, rig_poll(&first));
    first.keeps = true;
    rig_subscribe(&second, &broker);
    WAIT_DOING(first.taken, ==, 1, (rig_poll(&first), rig_poll(&second)));
    rd_kafka_topic_partition_list_destroy(first.kept);
    rd_kafka_destroy_flags(first.client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    rig_open_cooperative(&first, &broker, "first");
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first), ==, 1, rig_poll(&second));
    for (int waited_ms = 0; waited_ms < SHORT_MS; waited_ms += TICK_MS) {
        rig_poll(&first);
        assert_int_equal(rig_count_assigned(&second), 0);
    }
    assert_int_equal(count_described(&broker), 1);
    assert_int_equal(rd_kafka_unsubscribe(first.client), RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_subscribe(&first, &broker);
    WAIT_DOING(rig_count_assigned(&first) + rig_count_assigned(&second), ==, 2, (void)0);
    WAIT_DOING(count_described(&broker), ==, 2, (rig_poll(&first), rig_poll(&second)));
    rig_close(&first);
    rig_close(&second);
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
    T(a_static_member_that_dies_while_it_gives_back_leaves_that_to_nobody))

/*
 * Proves: what the cluster of a world answers about logs, offsets and transactions, Apache Kafka
 * answers. Each test runs against both: linked with the functions of tests/world as
 * world/conformance, and with librdkafka as kafka/conformance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crew.h"
#include "broker/topic_ids.h"
#include "support/at_once.h"
#include "support/wait.h"
#include "testing.h"
#include "world/conformance_rig.h"

/* ---- offsets ---- */

static void on_commit(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    *(rd_kafka_resp_err_t *)context = code;
}

static rd_kafka_resp_err_t commit(
    struct rig *rig, const struct broker *broker, int64_t offset, const char *text) {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rig->client);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker->jobs, 0, offset);
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
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker->jobs, 0, 0);
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
    rig_open(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    assert_int_equal(committed(&rig, &broker, text, sizeof text), RD_KAFKA_OFFSET_INVALID);
    assert_int_equal(commit(&rig, &broker, 7, "a text"), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(committed(&rig, &broker, text, sizeof text), 7);
    assert_string_equal(text, "a text");
    broker_recreate_jobs(&broker, 1);
    WAIT_FOR(committed(&rig, &broker, text, sizeof text), ==, RD_KAFKA_OFFSET_INVALID);
    rig_close(&rig);
    broker_stop(&broker);
}

TEST(nobody_commits_beside_the_members_of_a_group) {
    struct broker broker;
    struct rig member, other;
    broker_start(&broker, 1);
    rig_open(&member, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_open(&other, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_subscribe(&member, &broker);
    WAIT_DOING(rig_count_assigned(&member), ==, 1, (void)0);
    assert_int_equal(commit(&member, &broker, 1, ""), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(commit(&other, &broker, 2, ""), RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    rig_close(&other);
    rig_close(&member);
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
    rig_open(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    broker_produce(&broker, 0, 0, 5);
    ends_of(&rig, &broker, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 5);
    broker_delete_records(&broker, 0, 2);
    ends_of(&rig, &broker, &low, &high);
    assert_int_equal(low, 2);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker.jobs, 0, RD_KAFKA_OFFSET_BEGINNING);
    assert_int_equal(rd_kafka_offsets_for_times(rig.client, list, KAFKA_PATIENCE_MS), 0);
    assert_int_equal(list->elems[0].offset, 2);
    list->elems[0].offset = RD_KAFKA_OFFSET_END;
    assert_int_equal(rd_kafka_offsets_for_times(rig.client, list, KAFKA_PATIENCE_MS), 0);
    assert_int_equal(list->elems[0].offset, 5);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(rd_kafka_query_watermark_offsets(
                         rig.client, broker.jobs, 9, &low, &high, KAFKA_PATIENCE_MS),
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    rig_close(&rig);
    broker_stop(&broker);
}

static void read_from(struct rig *rig, const struct broker *broker, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker->jobs, 0, offset);
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
    rig_open(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    read_from(&rig, &broker, 9);
    WAIT_DOING(take_offset(&rig), ==, 0, (void)0);
    assert_int_equal(rig.resets, 1);
    rig_close(&rig);
    broker_stop(&broker);
}

TEST(a_topic_that_is_created_anew_has_another_id) {
    struct broker broker;
    struct rig rig;
    struct topic_ids ids = {0};
    char before[TOPIC_ID_SIZE];
    broker_start(&broker, 1);
    rig_open(&rig, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rig.client);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker.jobs, 0, 0);
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
    rig_close(&rig);
    broker_stop(&broker);
}

/* ---- transactions ---- */

static void begin(struct rig *rig) {
    assert_int_equal(rig_code_of(rd_kafka_begin_transaction(rig->client)), 0);
}

/* The id of all that write in transactions here is that of the group. */
static void open_transactions(struct rig *rig, const struct broker *broker) {
    rig_open(rig, broker, RD_KAFKA_PRODUCER, broker->group);
    WAIT_FOR(rig_code_of(rd_kafka_init_transactions(rig->client, KAFKA_PATIENCE_MS)), ==, 0);
}

static void send_record(struct rig *rig, const char *topic, size_t size) {
    static char bytes[2 << 20];
    const rd_kafka_vu_t parts[] = {{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {.ptr = bytes, .size = size}}};
    rd_kafka_error_t *error =
        rd_kafka_produceva(rig->client, parts, sizeof parts / sizeof parts[0]);
    rig->sent_count++;
    assert_int_equal(rig_code_of(error), 0);
    WAIT_DOING(rig->reported_count, ==, rig->sent_count, rig_take_reports(rig));
}

static rd_kafka_resp_err_t commit_transaction(struct rig *rig) {
    return rig_code_of(rd_kafka_commit_transaction(rig->client, KAFKA_PATIENCE_MS));
}

static void abort_transaction(struct rig *rig) {
    assert_int_equal(rig_code_of(rd_kafka_abort_transaction(rig->client, KAFKA_PATIENCE_MS)), 0);
}

TEST(readers_see_what_is_committed_and_nothing_of_what_is_aborted_or_open) {
    struct broker broker;
    struct rig writer, reader;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rig_open(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
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
    rig_close(&reader);
    rig_close(&writer);
    broker_stop(&broker);
}

static rd_kafka_error_t *try_to_send_offset(struct rig *writer, const struct broker *broker,
    int32_t partition, int64_t offset, rd_kafka_consumer_group_metadata_t *group, int timeout_ms) {
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker->jobs, partition, offset);
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(writer->client, list, group, timeout_ms);
    rd_kafka_topic_partition_list_destroy(list);
    return error;
}

static rd_kafka_resp_err_t send_offset(struct rig *writer, const struct broker *broker,
    int32_t partition, int64_t offset, rd_kafka_consumer_group_metadata_t *group) {
    return rig_code_of(
        try_to_send_offset(writer, broker, partition, offset, group, KAFKA_PATIENCE_MS));
}

TEST(offsets_of_an_open_transaction_are_told_to_nobody_and_then_to_all) {
    struct broker broker;
    struct rig writer, reader;
    char text[64];
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rig_open(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    WAIT_FOR(send_offset(&writer, &broker, 0, 3, group), ==, 0);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker.jobs, 0, 0);
    assert_int_equal(
        rd_kafka_committed(reader.client, list, SHORT_MS), RD_KAFKA_RESP_ERR__TIMED_OUT);
    rd_kafka_topic_partition_list_destroy(list);
    assert_int_equal(commit_transaction(&writer), 0);
    assert_int_equal(committed(&reader, &broker, text, sizeof text), 3);
    rd_kafka_consumer_group_metadata_destroy(group);
    rig_close(&reader);
    rig_close(&writer);
    broker_stop(&broker);
}

TEST(a_transaction_fails_whose_offsets_are_of_a_partition_that_does_not_come) {
    struct broker broker;
    struct rig writer;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    rd_kafka_error_t *error = NULL;
    do { /* its coordinator may not be known in time */
        rd_kafka_error_destroy(error);
        error = try_to_send_offset(&writer, &broker, 1, 3, group, SHORT_MS);
    } while (rd_kafka_error_is_retriable(error));
    assert_true(rd_kafka_error_txn_requires_abort(error));
    assert_false(rd_kafka_error_is_retriable(error));
    assert_int_equal(rig_code_of(error), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    abort_transaction(&writer);
    rd_kafka_consumer_group_metadata_destroy(group);
    rig_close(&writer);
    broker_stop(&broker);
}

/* In a thread of its own, where no assertion can fail. */
struct sending {
    struct rig *writer;
    const struct broker *broker;
    rd_kafka_consumer_group_metadata_t *group;
    rd_kafka_resp_err_t code;
};

static void send_early(void *context, uint32_t index) {
    struct sending *sending = context;
    sending->code = send_offset(sending->writer, sending->broker, 1, 3, sending->group);
}

TEST(offsets_of_a_partition_that_is_not_there_are_sent_until_it_is) {
    struct broker broker;
    struct rig writer, reader;
    struct crew *crew;
    struct error err;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rig_open(&reader, &broker, RD_KAFKA_CONSUMER, NULL);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new_with_genid(broker.group, -1, "", NULL);
    begin(&writer);
    struct sending sending = {.writer = &writer, .broker = &broker, .group = group};
    const struct crew_options options = {
        .name = "send", .count = 1, .run = send_early, .context = &sending};
    assert_int_equal(crew_start(&options, &crew, &err), ERR_OK);
    rig_poll_for(&reader, SHORT_MS);
    broker_add_partitions(&broker, 2);
    crew_join(&crew);
    assert_int_equal(sending.code, 0);
    assert_int_equal(commit_transaction(&writer), 0);
    rd_kafka_topic_partition_list_t *list = rig_list_one(broker.jobs, 1, 0);
    WAIT_FOR(rd_kafka_committed(reader.client, list, KAFKA_PATIENCE_MS), ==, 0);
    assert_int_equal(list->elems[0].offset, 3);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(group);
    rig_close(&reader);
    rig_close(&writer);
    broker_stop(&broker);
}

TEST(offsets_of_another_generation_or_of_an_unknown_member_end_a_transaction) {
    struct broker broker;
    struct rig writer, member;
    broker_start(&broker, 1);
    open_transactions(&writer, &broker);
    rig_open(&member, &broker, RD_KAFKA_CONSUMER, NULL);
    rig_subscribe(&member, &broker);
    WAIT_DOING(rig_count_assigned(&member), ==, 1, (void)0);
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
        assert_int_equal(send_offset(&writer, &broker, 0, 1, groups[i]), expected[i]);
        if (expected[i] == 0) assert_int_equal(commit_transaction(&writer), 0);
        else abort_transaction(&writer);
        rd_kafka_consumer_group_metadata_destroy(groups[i]);
    }
    rd_kafka_mem_free(member.client, id);
    rig_close(&member);
    rig_close(&writer);
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
    rig_close(&first);
    rig_close(&second);
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
    rig_close(&writer);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(what_a_group_commits_is_there_with_its_text_until_the_topic_is_deleted),
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

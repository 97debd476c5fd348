/* Brokers of kafka_harness.h: librdkafka's in this process, or the real one at
 * GPU_WORKER_TEST_KAFKA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/kafka_harness.h"
#include "support/wait.h"
#include "testing.h"

/* NULL for embedded brokers. */
static const char *real_address(void) {
    return getenv("GPU_WORKER_TEST_KAFKA");
}

static bool is_real(void) {
    return real_address() != NULL;
}

bool kafka_is_complete(void) {
    return is_real();
}

bool kafka_cooperates(void) {
    return is_real() && rd_kafka_version() >= 0x020a0000;
}

bool kafka_obeys(void) {
    return !is_real();
}

static void take_good_answer(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, KAFKA_PATIENCE_MS);
    if (event == NULL) fail_msg("no answer");
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("%s", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
}

/* `wanted` is destroyed. */
static void create_real_topic(
    struct broker *broker, const char *topic, rd_kafka_NewTopic_t *wanted) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(broker->client);
    rd_kafka_CreateTopics(broker->client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, KAFKA_PATIENCE_MS);
    if (event == NULL) fail_msg("creating %s: no answer from %s", topic, broker->bootstrap);
    size_t count;
    const rd_kafka_topic_result_t *result =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)[0];
    if (rd_kafka_topic_result_error(result) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("creating %s: %s", topic, rd_kafka_topic_result_error_string(result));
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
}

/* 0: there is no such topic. */
static int count_partitions(rd_kafka_t *client, const char *topic) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(client, 0, handle, &metadata, KAFKA_PATIENCE_MS);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) fail_msg("metadata: %s", rd_kafka_err2str(code));
    rd_kafka_topic_destroy(handle);
    int ret = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    return ret;
}

/* A broker answers that it has changed a topic before it tells clients of it: until then, they send
 * nothing to a new partition, and may send to a topic that was deleted. The client that asks is a
 * consumer, because a producer that asks for a topic creates it. */
static void wait_for_partitions(const struct broker *broker, const char *topic, int partitions) {
    rd_kafka_t *client = kafka_client(RD_KAFKA_CONSUMER, broker->bootstrap, NULL, NULL);
    WAIT_FOR(count_partitions(client, topic), ==, partitions);
    rd_kafka_destroy(client);
}

void broker_create_topic(struct broker *broker, const char *topic, int partitions) {
    if (is_real()) {
        create_real_topic(broker, topic, rd_kafka_NewTopic_new(topic, partitions, 1, NULL, 0));
        wait_for_partitions(broker, topic, partitions);
    } else
        assert_int_equal(rd_kafka_mock_topic_create(broker->cluster, topic, partitions, 1),
            RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void create_with(
    struct broker *broker, const char *topic, const char *option, const char *value) {
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, 1, 1, NULL, 0);
    rd_kafka_NewTopic_set_config(wanted, option, value);
    create_real_topic(broker, topic, wanted);
    wait_for_partitions(broker, topic, 1);
}

void broker_create_narrow_topic(
    struct broker *broker, const char *topic, const char *message_bytes_max) {
    create_with(broker, topic, "max.message.bytes", message_bytes_max);
}

void broker_create_compacted_topic(struct broker *broker, const char *topic) {
    create_with(broker, topic, "cleanup.policy", "compact");
}

void broker_recreate_jobs(struct broker *broker, int partitions) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(broker->client);
    rd_kafka_DeleteTopic_t *wanted = rd_kafka_DeleteTopic_new(broker->jobs);
    rd_kafka_DeleteTopics(broker->client, &wanted, 1, NULL, queue);
    take_good_answer(queue);
    rd_kafka_DeleteTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
    wait_for_partitions(broker, broker->jobs, 0);
    broker_create_topic(broker, broker->jobs, partitions);
}

void broker_add_partitions(struct broker *broker, int partitions) {
    char why[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(broker->client);
    rd_kafka_NewPartitions_t *wanted =
        rd_kafka_NewPartitions_new(broker->jobs, (size_t)partitions, why, sizeof why);
    rd_kafka_CreatePartitions(broker->client, &wanted, 1, NULL, queue);
    take_good_answer(queue);
    rd_kafka_NewPartitions_destroy(wanted);
    rd_kafka_queue_destroy(queue);
    wait_for_partitions(broker, broker->jobs, partitions);
}

void broker_start(struct broker *broker, int partitions) {
    static int count;
    *broker = (struct broker){0};
    unsigned run = (unsigned)getpid(), number = (unsigned)count++;
    unsigned long long stamp = clock_unix_ms();
    snprintf(broker->jobs, sizeof broker->jobs, "jobs-%llu-%u-%u", stamp, run, number);
    snprintf(broker->results, sizeof broker->results, "results-%llu-%u-%u", stamp, run, number);
    snprintf(broker->group, sizeof broker->group, "group-%llu-%u-%u", stamp, run, number);

    broker->client = kafka_client(RD_KAFKA_PRODUCER, is_real() ? real_address() : "", NULL, NULL);
    if (!is_real()) {
        broker->cluster = rd_kafka_mock_cluster_new(broker->client, 1);
        assert_non_null(broker->cluster);
    }
    snprintf(broker->bootstrap, sizeof broker->bootstrap, "%s",
        is_real() ? real_address() : rd_kafka_mock_cluster_bootstraps(broker->cluster));
    if (partitions > 0) broker_create_topic(broker, broker->jobs, partitions);
    broker_create_topic(broker, broker->results, 1);
}

void broker_stop(struct broker *broker) {
    if (broker->cluster != NULL) rd_kafka_mock_cluster_destroy(broker->cluster);
    rd_kafka_destroy(broker->client);
}

/* ---- what only librdkafka's does as it is told ---- */

void broker_hide_topic(struct broker *broker, const char *topic, bool hidden) {
    if (is_real()) return;
    rd_kafka_mock_topic_set_error(broker->cluster, topic,
        hidden ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : RD_KAFKA_RESP_ERR_NO_ERROR);
}

void broker_hide_ids(struct broker *broker) {}

void broker_refuse(
    struct broker *broker, enum request request, rd_kafka_resp_err_t code, int count) {
    for (int i = 0; i < count; i++)
        rd_kafka_mock_push_request_errors(broker->cluster, (int16_t)request, 1, code);
}

void broker_accept(struct broker *broker, enum request request) {
    rd_kafka_mock_clear_request_errors(broker->cluster, (int16_t)request);
}

void broker_go_down(struct broker *broker) {
    rd_kafka_mock_broker_set_down(broker->cluster, -1);
}

void broker_come_up(struct broker *broker) {
    rd_kafka_mock_broker_set_up(broker->cluster, -1);
}

/* ---- what is in it ---- */

void broker_delete_records(const struct broker *broker, int32_t partition, int64_t before) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(broker->client);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, broker->jobs, partition)->offset = before;
    rd_kafka_DeleteRecords_t *wanted = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(broker->client, &wanted, 1, NULL, queue);
    take_good_answer(queue);
    rd_kafka_DeleteRecords_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
}

static void send_numbers(
    rd_kafka_t *client, const struct broker *broker, int32_t partition, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        rd_kafka_resp_err_t code = rd_kafka_producev(client, RD_KAFKA_V_TOPIC(broker->jobs),
            RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_VALUE(text, strlen(text)), RD_KAFKA_V_END);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR) fail_msg("%s", rd_kafka_err2str(code));
    }
    assert_int_equal(rd_kafka_flush(client, KAFKA_PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
}

void broker_produce(const struct broker *broker, int32_t partition, int first, int count) {
    rd_kafka_t *client = kafka_client(RD_KAFKA_PRODUCER, broker->bootstrap, NULL, NULL);
    send_numbers(client, broker, partition, first, count);
    rd_kafka_destroy(client);
}

static void must_work(rd_kafka_error_t *error) {
    if (error != NULL) fail_msg("%s", rd_kafka_error_string(error));
}

void broker_produce_in_transaction(
    const struct broker *broker, int32_t partition, int count, enum transaction_end end) {
    rd_kafka_t *client =
        kafka_client(RD_KAFKA_PRODUCER, broker->bootstrap, "transactional.id", broker->jobs);
    must_work(rd_kafka_init_transactions(client, KAFKA_PATIENCE_MS));
    must_work(rd_kafka_begin_transaction(client));
    send_numbers(client, broker, partition, 0, count);
    must_work(end == COMMITTED ? rd_kafka_commit_transaction(client, KAFKA_PATIENCE_MS)
                               : rd_kafka_abort_transaction(client, KAFKA_PATIENCE_MS));
    rd_kafka_destroy(client);
}

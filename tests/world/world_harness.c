/* The brokers of broker/kafka_harness.h, of a world. All that a process starts are of one cluster,
 * as are those of a real one. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/kafka_harness.h"
#include "world/cluster.h"
#include "world/scheduler.h"
#include "world/versions.h"

bool kafka_is_complete(void) {
    return true;
}

bool kafka_cooperates(void) {
    return true;
}

bool kafka_obeys(void) {
    return true;
}

void broker_start(struct broker *broker, int partitions) {
    static unsigned count;
    if (getenv("GPU_WORKER_TEST_COOPERATIVE") != NULL) versions_be_new();
    if (!scheduler_is_on()) {
        scheduler_begin(1);
        cluster_begin();
        group_begin(false);
    }
    *broker = (struct broker){.bootstrap = CLUSTER_ADDRESS};
    broker->client = kafka_client(RD_KAFKA_PRODUCER, broker->bootstrap, NULL, NULL);
    snprintf(broker->jobs, sizeof broker->jobs, "jobs-%u", count);
    snprintf(broker->results, sizeof broker->results, "results-%u", count);
    snprintf(broker->group, sizeof broker->group, "workers-%u", count++);
    if (partitions > 0) broker_create_topic(broker, broker->jobs, partitions);
    broker_create_topic(broker, broker->results, 1);
}

void broker_stop(struct broker *broker) {
    rd_kafka_destroy(broker->client);
}

void broker_create_topic(struct broker *broker, const char *topic, int partitions) {
    cluster_make_topic(topic, partitions);
}

void broker_create_narrow_topic(
    struct broker *broker, const char *topic, const char *message_bytes_max) {
    cluster_make_topic(topic, 1)->message_bytes_max = strtoul(message_bytes_max, NULL, 10);
}

void broker_recreate_jobs(struct broker *broker, int partitions) {
    cluster_delete_topic(broker->jobs);
    cluster_make_topic(broker->jobs, partitions);
}

void broker_add_partitions(struct broker *broker, int partitions) {
    cluster_add_partitions(broker->jobs, partitions);
}

void broker_hide_topic(struct broker *broker, const char *topic, bool hidden) {}

void broker_hide_ids(struct broker *broker) {
    cluster_hide_ids();
}

void broker_refuse(
    struct broker *broker, enum request request, rd_kafka_resp_err_t code, int count) {
    cluster_refuse(request, code, count);
}

void broker_accept(struct broker *broker, enum request request) {
    cluster_refuse(request, RD_KAFKA_RESP_ERR_NO_ERROR, 0);
}

void broker_go_down(struct broker *broker) {
    cluster_go_down_until(UINT64_MAX);
}

void broker_come_up(struct broker *broker) {
    cluster_come_up();
}

void broker_delete_records(const struct broker *broker, int32_t partition, int64_t before) {
    cluster_find_log(broker->jobs, partition)->low = before;
}

static void append(struct log *log, int number, const struct txn *txn) {
    char text[16];
    int size = snprintf(text, sizeof text, "%d", number);
    const struct log_record record = {.payload = text, .payload_size = (size_t)size, .txn = txn};
    (void)cluster_append(log, &record);
}

void broker_produce(const struct broker *broker, int32_t partition, int first, int count) {
    struct log *log = cluster_find_log(broker->jobs, partition);
    for (int i = first; i < first + count; i++) append(log, i, NULL);
}

void broker_produce_in_transaction(
    const struct broker *broker, int32_t partition, int count, enum transaction_end end) {
    int16_t epoch;
    struct log *log = cluster_find_log(broker->jobs, partition);
    struct producer_id *id = producer_id_take(broker->jobs, KAFKA_PATIENCE_MS, &epoch);
    producer_id_touch(id, log);
    for (int i = 0; i < count; i++) append(log, i, producer_id_open(id));
    producer_id_end(id, end == COMMITTED ? TXN_COMMITTED : TXN_ABORTED);
}

/* The brokers of broker/kafka_harness.h, as far as conformance_test.c wants them, of a world. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/kafka_harness.h"
#include "world/cluster.h"
#include "world/scheduler.h"

void broker_start(struct broker *broker, int partitions) {
    *broker = (struct broker){
        .bootstrap = "world:1", .jobs = "jobs", .results = "results", .group = "workers"};
    scheduler_begin(1);
    cluster_begin();
    group_begin(false);
    cluster_make_topic(broker->jobs, partitions);
    cluster_make_topic(broker->results, 1);
}

void broker_stop(struct broker *broker) {} /* the world ends with the process */

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

void broker_delete_records(const struct broker *broker, int32_t partition, int64_t before) {
    cluster_find_log(broker->jobs, partition)->low = before;
}

void broker_produce(const struct broker *broker, int32_t partition, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char text[16];
        int size = snprintf(text, sizeof text, "%d", i);
        const struct log_record record = {.payload = text, .payload_size = (size_t)size};
        (void)cluster_append(cluster_find_log(broker->jobs, partition), &record);
    }
}

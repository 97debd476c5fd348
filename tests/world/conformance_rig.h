/**
 * Clients for the tests that are the same for the cluster of a world and for Apache Kafka:
 * conformance_test.c, members_conformance_test.c. They use what the worker uses of librdkafka.
 *
 * What fails here fails the test. Threads: one at a time.
 */
#ifndef WORLD_CONFORMANCE_RIG_H
#define WORLD_CONFORMANCE_RIG_H

#include "broker/kafka_harness.h"

enum { TICK_MS = 10, SHORT_MS = 500 };

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

/** `id`: of a static member, or of transactions; NULL: none. */
void rig_open(struct rig *rig, const struct broker *broker, rd_kafka_type_t type, const char *id);
void rig_open_cooperative(struct rig *rig, const struct broker *broker, const char *id);
void rig_close(struct rig *rig);

/** Polls a producer for reports. */
void rig_take_reports(struct rig *rig);

/** To the broker's jobs. */
void rig_subscribe(struct rig *rig, const struct broker *broker);

/** Polls a member; its messages are of no interest. */
void rig_poll(struct rig *rig);
void rig_poll_for(struct rig *rig, int ms);

/** Polls, and tells how many partitions it has. */
int rig_count_assigned(struct rig *rig);

/** What the error says, which ends with the call. */
rd_kafka_resp_err_t rig_code_of(rd_kafka_error_t *error);
void rig_must(rd_kafka_error_t *error);

/** The caller destroys it. */
rd_kafka_topic_partition_list_t *rig_list_one(const char *topic, int32_t partition, int64_t offset);

#endif

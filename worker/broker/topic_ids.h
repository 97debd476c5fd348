/**
 * The ids of topics, each with that of its cluster: topics that tools mirror into another cluster
 * have other ids there. A topic that is created anew has another one. librdkafka tells them
 * from 2.3 on, and brokers from 2.8 on. Only for recreations.c and reader.c; threads: one for each.
 */
#ifndef BROKER_TOPIC_IDS_H
#define BROKER_TOPIC_IDS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "base/error.h"
#include "broker/commit_metadata.h"

struct topic_id {
    char *topic;
    char id[TOPIC_ID_SIZE];
    bool is_missing; /* the last answer did not have it */
};

struct topic_ids {
    size_t count;
    struct topic_id *known;
};

void topic_ids_fini(struct topic_ids *ids); /* a zeroed one is fine */

/** Asks for the ids of the topics of `partitions`. False: this librdkafka cannot. */
MUST_CHECK bool topic_ids_ask(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions,
    int timeout_ms, rd_kafka_queue_t *answers);

/**
 * Takes the answer. False, and nothing is done: this event is not the answer, or says that no
 * broker gave one.
 */
MUST_CHECK bool topic_ids_take(struct topic_ids *ids, rd_kafka_t *client, rd_kafka_event_t *event);

enum topic_id_state {
    TOPIC_ID_UNKNOWN, /* it was never told: maybe the brokers know no ids */
    TOPIC_ID_TOLD,
    TOPIC_ID_MISSING /* the last answer did not have it: the topic may be deleted */
};

enum topic_id_state topic_ids_state(const struct topic_ids *ids, const char *topic);

/** The id that was told last, which lives until the next is taken; "" unless it is TOPIC_ID_TOLD.
 */
const char *topic_ids_get(const struct topic_ids *ids, const char *topic);

/** Whether both are known, and differ, and are not known to be of two clusters. */
MUST_CHECK bool topic_ids_differ(const char *a, const char *b);

#endif

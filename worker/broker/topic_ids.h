/**
 * The ids of topics. A topic that is created anew has another one. librdkafka tells them from 2.3
 * on, and brokers from 2.8 on. Only for recreations.c and reader.c; threads: one for each.
 */
#ifndef BROKER_TOPIC_IDS_H
#define BROKER_TOPIC_IDS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "base/error.h"

enum { TOPIC_ID_SIZE = 32 };

struct topic_id {
    char *topic;
    char id[TOPIC_ID_SIZE];
};

struct topic_ids {
    size_t count;
    struct topic_id *known;
};

void topic_ids_fini(struct topic_ids *ids); /* a zeroed one is fine */

/** Asks for the ids of the topics of `partitions`. False: this librdkafka cannot. */
MUST_CHECK bool topic_ids_ask(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions,
    int timeout_ms, rd_kafka_queue_t *answers);

typedef void topic_ids_on_changed(void *context, const char *topic);

/**
 * Takes the answer, and calls `on_changed` for each topic that has another id than before.
 * `are_all_told` is false if a broker answered, and did not tell the id of each. False, and nothing
 * is done: this event is not the answer.
 */
MUST_CHECK bool topic_ids_take(struct topic_ids *ids, rd_kafka_event_t *event,
    topic_ids_on_changed *on_changed, void *context, bool *are_all_told);

/** The next id of the topic is the first. */
void topic_ids_forget(struct topic_ids *ids, const char *topic);

#endif

/**
 * Makes a member leave its group for good, within a deadline, whatever its brokers do. Only for
 * consumer.c, on its thread.
 */
#ifndef BROKER_DEPARTURE_H
#define BROKER_DEPARTURE_H

#include <librdkafka/rdkafka.h>
#include <stdint.h>

typedef void departure_on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *opaque);

/**
 * `drop_next(opaque)` polls the client for some milliseconds and drops what it gets; `on_rebalance`
 * answers rebalances while the client closes.
 */
void departure_leave(rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque),
    departure_on_rebalance *on_rebalance, void *opaque);

#endif

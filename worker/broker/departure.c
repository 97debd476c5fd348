#include "broker/departure.h"

#include <stdbool.h>

#include "base/clock.h"

enum { ATTENTION_MS = 10 };

static bool is_fenced(rd_kafka_t *client) {
    return rd_kafka_fatal_error(client, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/*
 * Rebalances are read as events, because messages that still arrive would end a poll for callbacks.
 */
static void serve_closing(rd_kafka_t *client, rd_kafka_queue_t *queue,
    departure_on_rebalance *on_rebalance, void *opaque) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ATTENTION_MS);
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
        on_rebalance(client, rd_kafka_event_error(event),
            rd_kafka_event_topic_partition_list(event), opaque);
    rd_kafka_event_destroy(event);
}

/*
 * A static member leaves its group only if it unsubscribes, and only if that is done before the
 * client closes. Afterwards the member has no name any more.
 */
static void unsubscribe(
    rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque), void *opaque) {
    rd_kafka_unsubscribe(client);
    while (!is_fenced(client) && clock_ns() < deadline_ns) {
        char *member = rd_kafka_memberid(client);
        bool is_member = member != NULL && member[0] != 0;
        if (member != NULL) rd_kafka_mem_free(client, member);
        if (!is_member) return;
        drop_next(opaque);
    }
}

/* rd_kafka_consumer_close() would wait for brokers that are away, and for answers to a member that
 * another one has replaced. */
void departure_leave(rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque),
    departure_on_rebalance *on_rebalance, void *opaque) {
    unsubscribe(client, deadline_ns, drop_next, opaque);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(client, queue);
    if (error != NULL) rd_kafka_error_destroy(error);
    while (!rd_kafka_consumer_closed(client) && !is_fenced(client) && clock_ns() < deadline_ns)
        serve_closing(client, queue, on_rebalance, opaque);
    rd_kafka_queue_destroy(queue);
}

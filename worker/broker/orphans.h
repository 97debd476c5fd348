/**
 * Finds partitions of the job topics that no member of the group has, and that nobody would ever
 * get. A static member, who comes back within the session timeout under the same
 * group.instance.id, may leave some:
 *
 * - A cooperative group moves a partition in two steps: its owner gives it back and joins again,
 *   and then it is handed out. One that died in between is given what it was to keep, and knows of
 *   no second step. The brokers take the group for stable (KIP-345 and KIP-429; no protocol of
 *   clients alone can see it).
 * - The leader of a group sees that a topic got partitions, and has them handed out. One that was
 *   away at that time takes those that it finds for handed out already (KIP-814).
 *
 * So a static member looks at its group once after it was first assigned partitions, and once more
 * after `drain_timeout_ms` if it saw orphans, because by then every owner that lives has given back
 * and joined again. If there are orphans still, the caller leaves the group and joins it again:
 * then all partitions are handed out anew.
 *
 * Only for consumer.c, on its thread.
 */
#ifndef BROKER_ORPHANS_H
#define BROKER_ORPHANS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/client.h"
#include "broker/observer.h"

struct orphans {
    rd_kafka_t *client;
    const struct client_events *events;
    uint32_t drain_timeout_ms;
    struct observer *observer; /* NULL: it does not look */
    uint64_t next_look_ns;     /* 0: there is nothing to look for */
    bool is_asked;             /* the group was asked, and has not answered */
    bool were_seen;            /* by the look before */
    uint32_t looks;
};

void orphans_init(struct orphans *orphans, rd_kafka_t *client, const struct client_events *events,
    uint32_t drain_timeout_ms);
void orphans_fini(struct orphans *orphans); /* a zeroed one is fine */

/** The client was assigned partitions, or none. Only the first time counts. */
void orphans_begin(struct orphans *orphans);

/** Looks when it is time; true, once, if the caller has to leave the group and join again. */
MUST_CHECK bool orphans_serve(struct orphans *orphans);

#endif

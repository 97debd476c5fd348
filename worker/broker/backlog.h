/**
 * What stands in job topics of the embedded broker and is not done: how many bytes of each
 * partition come behind the offset that the worker has committed. Only for gate.c.
 *
 * librdkafka's mock cluster drops the oldest batches of a partition that has more than 5 MiB. If
 * that leaves none, it loses the new one as well. So a partition is full with BACKLOG_BYTES_MAX,
 * and no batch, of any topic, may have more than BACKLOG_BATCH_MAX: two of them always fit.
 *
 * Memory: BACKLOG_MARKS marks for each partition. Threads: any.
 */
#ifndef BROKER_BACKLOG_H
#define BROKER_BACKLOG_H

#include <librdkafka/rdkafka.h>

#include "base/error.h"
#include "broker/produce_request.h"

enum { BACKLOG_BYTES_MAX = 4 << 20, BACKLOG_BATCH_MAX = 2 << 20, BACKLOG_MARKS = 128 };

struct backlog;

/** Of topics with so many partitions each. NULL when memory is short. */
struct backlog *backlog_create(char *const *topics, size_t topic_count, uint32_t partitions);
void backlog_destroy(struct backlog *backlog); /* NULL is fine */

enum backlog_answer { BACKLOG_ROOM, BACKLOG_FULL, BACKLOG_TOO_LARGE, BACKLOG_BROKEN };

/** Takes the room for all that a request appends, or for nothing of it. */
MUST_CHECK enum backlog_answer backlog_take_room(
    struct backlog *backlog, struct produce_entries request);

/** Notes where it was appended; what was not, has no room any more. */
void backlog_append(
    struct backlog *backlog, struct produce_entries request, struct produce_entries response);

/** The partitions whose commits would give room, for rd_kafka_committed(); the caller's. */
rd_kafka_topic_partition_list_t *backlog_list(struct backlog *backlog);

/** Takes out what stands before these committed offsets. */
void backlog_commit(struct backlog *backlog, const rd_kafka_topic_partition_list_t *committed);

#endif

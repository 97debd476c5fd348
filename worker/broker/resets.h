/**
 * Partitions whose log no longer has the offset to read next: retention or DeleteRecords overtook
 * the group, or the log was truncated. librdkafka then continues where `auto.offset.reset` says,
 * and reports that only in a line of its log. This module reads that line, and reports what was
 * lost once the first message from the new place has arrived. Only for consumer.c.
 *
 * Lifetime: owns its names. Threads: intake thread only.
 */
#ifndef BROKER_RESETS_H
#define BROKER_RESETS_H

#include "broker/client.h"
#include "broker/source.h"

struct reset {
    char *topic;
    int32_t partition;
    int64_t from; /* the offset that should have been read */
};

struct resets {
    size_t count;
    struct reset *items;
};

void resets_fini(struct resets *resets); /* a zeroed one is fine */

/**
 * True if a line of librdkafka's log reports a reset; the reset is kept if the line names its
 * partition.
 */
bool resets_note(struct resets *resets, const char *facility, const char *line);

/**
 * Reading continues at `offset` of a partition. If it was reset, reports what was lost, and counts
 * it in `source`.
 */
void resets_tell(struct resets *resets, struct source *source, const struct client_events *events,
    const char *topic, int32_t partition, int64_t offset);

/**
 * Takes the offset that should have been read next, if `partition` was reset since the last call.
 */
bool resets_take(struct resets *resets, const char *topic, int32_t partition, int64_t *from);

#endif

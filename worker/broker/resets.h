/**
 * Partitions whose log no longer has the offset that was to be read next: retention or
 * DeleteRecords overtook the group, or the log was cut. librdkafka then goes on where
 * `auto.offset.reset` says and tells it in a line of its log only; this reads that line, and says
 * what it cost once the first message of the new place has come. Only for consumer.c.
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
    int64_t from; /* the offset that was to be read */
};

struct resets {
    size_t count;
    struct reset *items;
};

void resets_fini(struct resets *resets); /* a zeroed one is fine */

/** True where a line of librdkafka's log tells of a reset; it is kept if it says which. */
bool resets_note(struct resets *resets, const char *facility, const char *line);

/**
 * Reading goes on at `offset` of a partition: where it was reset, tells what was lost on the way,
 * and counts it in `source`.
 */
void resets_tell(struct resets *resets, struct source *source, const struct client_events *events,
    const char *topic, int32_t partition, int64_t offset);

/** The offset that was to be read next, where `partition` was reset since the last call. */
bool resets_take(struct resets *resets, const char *topic, int32_t partition, int64_t *from);

#endif

/**
 * Partitions whose log does not have the offset to read next: retention or DeleteRecords overtook
 * the group, or the log has lost its end (the election of a leader that did not have all of it).
 * librdkafka then continues where `auto.offset.reset` says, and reports that only in a line of its
 * log. This module reads that line. Once the first message from the new place has arrived, it
 * reports what was lost; and if the log has lost its end, it reads on there, because everything
 * below was read before. A log that is another one is read from its start. Only for consumer.c.
 *
 * Lifetime: owns its names. Threads: intake thread only.
 */
#ifndef BROKER_RESETS_H
#define BROKER_RESETS_H

#include "broker/recreations.h"

struct reset {
    char *topic;
    int32_t partition;
    int64_t from; /* the offset that should have been read */
};

struct resets {
    struct recreations *recreations;
    size_t count;
    struct reset *items;
    bool lacks_one; /* memory was short when it was to be kept: nothing can be read any more */
};

void resets_init(struct resets *resets, struct recreations *recreations);
void resets_fini(struct resets *resets); /* a zeroed one is fine */

/**
 * True if a line of librdkafka's log reports a reset; the reset is kept if the line names its
 * partition.
 */
bool resets_note(struct resets *resets, const char *facility, const char *line);

/**
 * Takes the offset that should have been read next, if `partition` was reset since the last call.
 */
bool resets_take(struct resets *resets, const char *topic, int32_t partition, int64_t *from);

/** A partition begins to be followed: it was not reset yet. */
void resets_forget(struct resets *resets, const char *topic, int32_t partition);

/**
 * Reading continues with `message`, or with the end of a partition, of a partition that is
 * followed. If it was reset, reports what was lost. True: it is not to be taken, and neither is
 * what was read before it: reading goes on elsewhere. If it cannot, *failure says why. Errors:
 * ERR_BROKER, ERR_NO_MEMORY.
 */
MUST_CHECK bool resets_move(
    struct resets *resets, const rd_kafka_message_t *message, struct error *failure);

#endif

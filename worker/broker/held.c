#include "broker/held.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const rd_kafka_message_t *message, const char *topic, int32_t partition) {
    return message->partition == partition && strcmp(rd_kafka_topic_name(message->rkt), topic) == 0;
}

static rd_kafka_message_t *remove_at(struct held *held, size_t index) {
    rd_kafka_message_t *message = held->messages[index];
    held->count--;
    memmove(&held->messages[index], &held->messages[index + 1],
        (held->count - index) * sizeof held->messages[0]);
    return message;
}

void held_fini(struct held *held) {
    for (size_t i = 0; i < held->count; i++) rd_kafka_message_destroy(held->messages[i]);
    free(held->messages);
    *held = (struct held){0};
}

bool held_has(const struct held *held, const char *topic, int32_t partition) {
    for (size_t i = 0; i < held->count; i++)
        if (is_of(held->messages[i], topic, partition)) return true;
    return false;
}

bool held_add(struct held *held, rd_kafka_message_t *message) {
    rd_kafka_message_t **grown = realloc(held->messages, (held->count + 1) * sizeof grown[0]);
    if (grown == NULL) return false;
    held->messages = grown;
    grown[held->count++] = message;
    return true;
}

/* The first message of a partition has room before its later ones, so they stay in order. */
rd_kafka_message_t *held_take(struct held *held, struct offsets *offsets) {
    for (size_t i = 0; i < held->count; i++) {
        const rd_kafka_message_t *message = held->messages[i];
        int64_t ahead = offsets_ahead(
            offsets, rd_kafka_topic_name(message->rkt), message->partition, message->offset);
        if (ahead <= OFFSETS_WINDOW / 2) return remove_at(held, i);
    }
    return NULL;
}

void held_drop_of(struct held *held, const char *topic, int32_t partition) {
    for (size_t i = held->count; i > 0; i--)
        if (is_of(held->messages[i - 1], topic, partition))
            rd_kafka_message_destroy(remove_at(held, i - 1));
}

void held_drop(struct held *held, const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++)
        held_drop_of(held, partitions->elems[i].topic, partitions->elems[i].partition);
}

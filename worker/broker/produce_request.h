/**
 * Reads the Produce requests of Kafka's protocol, and the responses to them, in the versions 0 to 7
 * (kafka.apache.org/protocol): what is appended to which partition, and where. Only for gate.c and
 * backlog.c.
 *
 * The bytes are from outside: each length is checked against the bytes that are left. Lifetime:
 * plain values that point into the bytes. Threads: pure.
 */
#ifndef BROKER_PRODUCE_REQUEST_H
#define BROKER_PRODUCE_REQUEST_H

#include <stdio.h>

#include "base/slice.h"

enum { PRODUCE_API = 0, PRODUCE_VERSION_MAX = 7 };

/** Reads the integers of the protocol, which are big-endian; false if there are too few bytes. */
bool produce_take_16(struct slice *from, int16_t *ret);
bool produce_take_32(struct slice *from, int32_t *ret);

/** The entries that are left of a request or a response: one for each partition. */
struct produce_entries {
    struct slice rest, topic;
    int32_t topics, partitions; /* that are left: of all; of the current topic */
    int32_t number;             /* which the request has, and its response too */
    int16_t version;
    bool is_response;
};

struct produce_entry {
    struct slice topic;
    int32_t partition;
    uint32_t bytes;       /* of a request: of the records */
    uint32_t messages;    /* as well: how many they are */
    int16_t code;         /* of a response: Kafka's error */
    int64_t first_offset; /* as well: of the first message */
};

/**
 * `request` and `response` begin behind their size. *acks_at is where the request says how many
 * brokers must have it (two bytes, 0: no response is wanted). False if it is none.
 */
bool produce_read_request(struct slice request, struct produce_entries *ret, size_t *acks_at);
bool produce_read_response(struct slice response, int16_t version, struct produce_entries *ret);

enum produce_next { PRODUCE_ENTRY, PRODUCE_END, PRODUCE_BROKEN };
enum produce_next produce_next(struct produce_entries *entries, struct produce_entry *ret);

/** Writes the response, behind its size, that refuses all of a request with an error of Kafka's. */
void produce_write_refusal(struct produce_entries request, int16_t code, FILE *response);

#endif

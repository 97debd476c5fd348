/**
 * A message as it came in: its bytes, key, headers and where it stood.
 *
 * The bytes are copied out of the broker client's fetch buffers: one unfinished job would otherwise
 * pin a whole fetch (up to 50 MiB), and memory could not be bounded by counting messages.
 *
 * Units: `held_bytes` is all host memory that the delivery stands for. Lifetime: one heap block,
 * owned by whoever holds the pointer; destroying it does *not* mark the message as finished
 * (source_finish() does). Threads: one owner at a time.
 */
#ifndef BROKER_DELIVERY_H
#define BROKER_DELIVERY_H

#include "base/slice.h"

/**
 * Where a message stands in its source. `topic` lives as long as the source. `lease` is the
 * source's own: which taking of the partition this was, so that a late finish() of an earlier one
 * is known.
 */
struct position {
    const char *topic;
    int32_t partition;
    int64_t offset;
    uint64_t lease;
};

struct header {
    struct slice name;
    struct slice value;
};

struct delivery {
    struct position position;
    uint64_t received_ns;       /* clock_ns() at arrival */
    uint64_t published_unix_ms; /* by the broker's or the sender's clock; 0: not known */
    size_t held_bytes;
    bool is_suspect; /* an owner before may have died of it; then as executor/suspects.h says */
    /* the executor's own (executor/suspects.h) */
    uint32_t
        failed_attempts; /* that cost an executor its life; the last is a convicted one's own */
    struct delivery *next;
    struct slice payload;
    bool has_key;
    struct slice key;
    size_t header_count;
    const struct header *headers;
};

/** A copy of all of `message` (its header array too) in one block; NULL when memory is short. */
struct delivery *delivery_create(const struct delivery *message);
void delivery_destroy(struct delivery *delivery); /* NULL is fine */

/** The value of the last header of that name; false if there is none. */
bool delivery_header(const struct delivery *delivery, const char *name, struct slice *ret);

#endif

/**
 * A message as it was taken: its bytes, key, headers and position.
 *
 * The bytes are copied out of the broker client's fetch buffers. Otherwise one unfinished job would
 * keep a whole fetch in memory (up to 50 MiB), and memory could not be bounded by counting
 * messages. Copying is most of the cost of taking a message. So a source only lends its bytes, and
 * the first stage that works on the message copies them, on a thread of its own. Only a large
 * message that is nearly all of what its source must keep for it stays there (delivery_may_stay()).
 *
 * Units: `held_bytes` is all host memory that the delivery needs, its dead letter included.
 * Lifetime: the holder of the pointer owns it. Destroying it does *not* mark the message as
 * finished (source_finish() does). A loan ends before its source does. Threads: one owner at a
 * time.
 */
#ifndef BROKER_DELIVERY_H
#define BROKER_DELIVERY_H

#include "base/error.h"
#include "base/slice.h"

/**
 * Where a message stands in its source. `topic` lives as long as the source. `lease` belongs to the
 * source: it numbers the times in which the partition belonged to this worker, so that a late
 * finish() from an earlier time is recognised. The time tells the message from another one that
 * comes to its place, in a log that lost its end or in a topic that was created anew.
 */
struct position {
    const char *topic;
    int32_t partition;
    int64_t offset;
    uint64_t lease;
    uint64_t published_unix_ms; /* by the clock of the broker or the sender; 0: not known */
};

/** Only this many headers of a message are kept. */
enum { DELIVERY_HEADERS_MAX = 256 };

/**
 * What a header costs in addition to its bytes: a place in the message's list, in the dead letter's
 * and in the client's. Its bytes count twice if there is a dead letter.
 */
enum { DELIVERY_HEADER_BYTES = 256 };

struct header {
    struct slice name;
    struct slice value;
};

/** Bytes that are lent. `end(lender)` is called, on any thread, when they are not read any more. */
struct loan {
    void (*end)(void *lender); /* NULL: the lender need not know */
    void *lender;
    size_t holds_bytes; /* host memory that stays for as long as the loan; SIZE_MAX: not known */
};

struct delivery {
    struct position position;
    uint64_t received_ns; /* clock_ns() at arrival */
    size_t held_bytes;
    size_t reserved_bytes; /* of these, for its job and its result, until it is decoded */
    bool is_suspect;       /* an earlier owner may have died of it; see quarantine/suspects.h */
    /* the executor's own (quarantine/suspects.h) */
    uint32_t failed_attempts; /* attempts that ended an executor; the last one is the conviction
                                 itself */
    struct delivery *next;
    uint64_t held_until_ns; /* if it waits: it gives way to others until then */
    uint64_t number;        /* in the order in which messages are taken (prepare/providers.h) */
    struct slice payload;
    bool has_key;
    struct slice key;
    size_t header_count;
    const struct header *headers;
    bool is_cut; /* it had more headers than these */
    /* its own */
    struct loan loan;
    bool is_kept;  /* not lent any more */
    bool is_moved; /* it is in memory of its holder's */
    void *kept;    /* the bytes; NULL: somebody else's, or behind it */
};

/** A copy of all of `message`, its header array too; NULL when memory is short. */
struct delivery *delivery_create(const struct delivery *message);

/**
 * The same, but payload, key and the headers' texts are not copied for now. NULL: out of memory;
 * the loan has not begun.
 */
struct delivery *delivery_lend(const struct delivery *message, struct loan loan);

/** Copies what is lent, and ends the loan. False when memory is short; the loan goes on. */
MUST_CHECK bool delivery_keep(struct delivery *delivery);

/** True if the message may stay lent until its job is over: it is large, and the loan holds at most
 * a quarter more than the message. */
bool delivery_may_stay(const struct delivery *delivery);

/**
 * As delivery_keep(), but the delivery itself moves as well, once, into memory of the caller's that
 * must outlive it: delivery_room() bytes, aligned as for malloc(). Returns where it is now.
 */
struct delivery *delivery_move(struct delivery *delivery, void *memory);
size_t delivery_room(const struct delivery *delivery);

void delivery_destroy(struct delivery *delivery); /* NULL is fine */

/** The value of the last header of that name; false if there is none. */
bool delivery_header(const struct delivery *delivery, const char *name, struct slice *ret);

#endif

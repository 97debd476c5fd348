/** A source and a sink in memory: tests say what comes in and see all that goes out. */
#ifndef TESTS_SUPPORT_MEMORY_BROKER_H
#define TESTS_SUPPORT_MEMORY_BROKER_H

#include <stdatomic.h>

#include "broker/sink.h"
#include "broker/source.h"

enum { MEMORY_PUBLISHED_MS = 1000 }; /* of all messages */

struct memory_message {
    enum route route;
    char *topic; /* NULL: the route's own */
    struct slice payload;
    size_t header_count;
    struct header headers[32];
};

/** Where a message stands, beside its payload. */
struct memory_place {
    const char *key; /* NULL: none */
    int32_t partition;
    int64_t offset;
    bool comes_last;      /* only once all messages before it are finished */
    bool comes_revoked;   /* the same, and its partition was revoked and came back in between */
    bool comes_contested; /* as after two takeovers: owners may have died of it */
    size_t comes_after;   /* not 0: only once so many messages are finished, whichever they are */
};

/** The ends outlive the source and sink that executors destroy. */
struct memory_broker {
    /* in */
    size_t job_count;
    const struct slice *jobs;          /* payloads */
    const struct memory_place *places; /* NULL: no keys, partition 0, the index as the offset */
    size_t next;
    bool is_endless;                /* after the last one the source waits instead of ending */
    void (*on_poll)(void *context); /* NULL: nothing; on the thread that polls */
    void *on_poll_context;
    bool comes_singly;        /* a poll that does not wait finds nothing */
    bool is_revoking;         /* at each poll partition 0 is revoked, and comes back */
    atomic_size_t left_count; /* the partitions of so many messages, the first ones, have left */
    bool is_replaced;     /* polls fail, as those of a member whose name another one has taken */
    atomic_int *finished; /* by index: how often it was finished */
    atomic_size_t finished_count;
    size_t open_max; /* most messages that were taken and not finished at once */
    /* out */
    atomic_size_t message_count; /* it may be read while they come */
    size_t message_max;
    struct memory_message *messages;
    size_t refuse_over_bytes; /* larger payloads are refused for good; 0: none */
    bool refuse_errors;       /* refuses all there is */
    uint64_t settle_ns;       /* settled together, so long after the first was sent; 0: at once */
    int64_t revoke_from;      /* what answers later messages is dropped: others do; 0: none */
};

void memory_broker_init(struct memory_broker *broker, const struct slice *jobs, size_t count);
void memory_broker_fini(struct memory_broker *broker);
struct source *memory_source(struct memory_broker *broker);
struct sink *memory_sink(struct memory_broker *broker);

/** The result of the job of that id (header gpu-worker-job-id); NULL if there is none. */
const struct memory_message *memory_find(
    const struct memory_broker *broker, enum route route, const char *id);
size_t memory_count(const struct memory_broker *broker, enum route route);

/** The header's value as text, "" if there is none. */
const char *memory_header(const struct memory_message *message, const char *name);

#endif

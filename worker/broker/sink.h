/**
 * Where results, dead letters, telemetry and progress go: a Kafka producer (producer.c) or files
 * (file_sink.c).
 *
 * One thread at a time makes a call. A record that was sent is settled exactly once, by a
 * call of its `on_settled` from inside sink_send(), sink_serve() or sink_flush(): with ERR_OK and
 * no error when it is acknowledged (Kafka: by all in-sync replicas, and in a committed
 * transaction), otherwise with the reason. on_settled may free the record and send others.
 *
 * Errors of a record: ERR_PUBLISH_REFUSED is permanent: the record is too large, or the topic that
 * it names itself does not exist or is forbidden. Sending it again cannot help. If the route's
 * configured topic is at fault, the error is ERR_BROKER, since the operator must correct it.
 * ERR_REVOKED: the message that it answers belongs to another worker now, and the record is
 * dropped. ERR_BROKER and ERR_IO mean that the sink itself is lost.
 */
#ifndef BROKER_SINK_H
#define BROKER_SINK_H

#include "base/error.h"
#include "broker/delivery.h"

enum route { ROUTE_RESULT, ROUTE_DEAD_LETTER, ROUTE_TELEMETRY, ROUTE_PROGRESS, ROUTE_COUNT };

/**
 * One message to publish. The publisher owns it from creation until on_settled; the sink borrows it
 * in between, bytes, key and headers included.
 */
struct record {
    enum route route;
    const char *topic; /* NULL: the route's configured topic */
    bool has_key;
    struct slice key;
    struct slice payload;
    size_t header_count;
    const struct header *headers;
    const struct position *answers; /* the message that it answers; NULL: none */
    bool is_last;                   /* the last of the records that answer it */
    /* its position in Kafka, once it is settled with ERR_OK; before, the producer's; not set by
     * files */
    int32_t partition;
    int64_t offset;
    void (*on_settled)(struct record *record, enum err code, const struct error *err);
};

struct sink;

struct sink_operations {
    /** Starts sending. Waits for room if the client's queue is full. */
    void (*send)(struct sink *sink, struct record *record);

    /**
     * Whether the record can be sent, and is settled by the next serve(), without waiting for
     * anything: not for a broker, a disk or a reader. NULL: never.
     */
    bool (*takes_at_once)(struct sink *sink, const struct record *record);

    /** Serves acknowledgements, waiting up to `timeout_ms` for the first. */
    void (*serve)(struct sink *sink, int timeout_ms);

    /**
     * Waits until everything sent is settled; ERR_TIMEOUT after `timeout_ms` (-1: for ever). It may
     * return when a part is: then the caller finishes those messages at the source, since what is
     * committed with the next part says that they are, and calls again.
     */
    enum err (*flush)(struct sink *sink, int timeout_ms, struct error *err);

    /**
     * Called when everything that was sent is settled and its messages are finished at the source,
     * so that the sink has exactly their answers. NULL: not needed.
     */
    void (*settled)(struct sink *sink);

    /**
     * Records that are not settled by now are settled with ERR_BROKER; an open transaction is
     * aborted.
     */
    void (*destroy)(struct sink *sink);
};

/** The first member of each kind of sink. */
struct sink {
    const struct sink_operations *operations;
};

static inline void sink_send(struct sink *sink, struct record *record) {
    sink->operations->send(sink, record);
}

static inline bool sink_takes_at_once(struct sink *sink, const struct record *record) {
    return sink->operations->takes_at_once != NULL && sink->operations->takes_at_once(sink, record);
}

static inline void sink_serve(struct sink *sink, int timeout_ms) {
    sink->operations->serve(sink, timeout_ms);
}

static inline void sink_settled(struct sink *sink) {
    if (sink->operations->settled != NULL) sink->operations->settled(sink);
}

MUST_CHECK static inline enum err sink_flush(struct sink *sink, int timeout_ms, struct error *err) {
    return sink->operations->flush(sink, timeout_ms, err);
}

static inline void sink_destroy(struct sink *sink) {
    if (sink != NULL) sink->operations->destroy(sink);
}

#endif

/**
 * Where jobs come from: a Kafka consumer group (consumer.c) or a stream of messages
 * (file_source.c).
 *
 * One intake thread polls; any thread starts and finishes. A message that was polled waits until
 * source_start(), which is called before its job is given to the device or answered. If its
 * partition has to leave this worker, only messages that have started are waited for; the next
 * owner gets the others. A message that was polled stays unfinished until
 * source_finish(), which is called when everything that answers it has been acknowledged; only then
 * may its offset be committed. Finishing happens in any order.
 *
 * Lifetime: destroy() after the last finish() and the last loan's end. Errors: ERR_BROKER or ERR_IO
 * are final for the source; passing trouble (a broker away for a while) is retried inside and
 * logged by on_event.
 */
#ifndef BROKER_SOURCE_H
#define BROKER_SOURCE_H

#include <stdatomic.h>

#include "base/error.h"
#include "broker/delivery.h"
#include "broker/offsets.h"

struct source;

/** Where a source stands with the group that its messages come from. */
enum source_group {
    SOURCE_GROUP_NONE,      /* it needs none */
    SOURCE_GROUP_NO_BROKER, /* no broker has answered yet */
    SOURCE_GROUP_JOINING,   /* it has not been a member yet */
    SOURCE_GROUP_MEMBER,    /* it has its share, which may be no partition */
    SOURCE_GROUP_AWAY       /* it was a member, and waits to be one again */
};

/** How a partition that is read stands; `topic` is valid during the visit. */
struct source_partition {
    const char *topic;
    int32_t partition;
    int64_t lag; /* messages up to its end, as last heard, that are not finished; -1: not known */
    size_t unfinished_count;  /* taken, and not finished */
    uint64_t lowest_since_ns; /* since when the lowest of them is the lowest */
};
typedef void source_visit_partition(void *context, const struct source_partition *partition);

struct source_operations {
    /**
     * Waits up to `timeout_ms` for a message, which is lent. ERR_OK with *ret NULL: none came. At
     * the end of a finite source *at_end becomes true. Must be called steadily, paused or not: it
     * also serves the client's callbacks and commits what is due. Intake thread only.
     */
    enum err (*poll)(struct source *source, int timeout_ms, struct delivery **ret, bool *at_end,
        struct error *err);

    /** While paused, poll() brings nothing (messages already fetched excepted). Intake thread only.
     */
    void (*pause)(struct source *source, bool paused);

    /** Everything for the message at `position` is acknowledged. Any thread. */
    void (*finish)(struct source *source, const struct position *position);

    /** Whether the message is this worker's, and its partition is not leaving. Any thread; NULL: it
     * always is. */
    bool (*keeps)(const struct source *source, const struct position *position);

    /**
     * The message is to be run or answered now: from here on a partition that leaves waits for it.
     * True if it had started already, too. False: its next owner runs it. Any thread; NULL: always
     * true.
     */
    bool (*start)(struct source *source, const struct position *position);

    /** A message that has started waits again, or is left to the next owner; others are as they
     * were. Any thread; NULL where nothing leaves. */
    void (*put_back)(struct source *source, const struct position *position);

    /** What was taken and has not finished, any thread; NULL: this kind does not count. */
    void (*get_totals)(const struct source *source, struct offsets_totals *ret);

    /** Visits the partitions that are read, any thread; NULL: this kind has none. */
    void (*each_partition)(
        const struct source *source, source_visit_partition *visit, void *context);

    /** Commits what is finished and leaves the group; of a finite source, says whether its end came
     * early. Intake thread, after the drain. */
    enum err (*close)(struct source *source, int timeout_ms, struct error *err);

    void (*destroy)(struct source *source);
};

/** The worker has lost a partition, or the partition its log, or the end of that: what is known of
 * its messages counts no more, and those in hand are not this worker's. `topic` is valid during the
 * call. Intake thread, from inside poll() or close(). */
typedef void source_on_revoked(void *context, const char *topic, int32_t partition);

/**
 * Messages below `next` are committed, and are not read again. From the intake thread, inside
 * poll() or close(), or from the thread that serves the transactions. Not every commit is reported.
 * `topic` is valid during the call.
 */
typedef void source_on_committed(void *context, const char *topic, int32_t partition, int64_t next);

/** Whether and how a partition may be read from an offset on. */
enum fetch_verdict {
    FETCH_READ,
    FETCH_TRY,  /* alone first, while nothing is taken: reading it may end the process */
    FETCH_ASIDE /* not at all, until the guard answers otherwise */
};

enum fetch_event {
    FETCH_TRIAL_BEGINS,
    FETCH_TRIAL_INFLATES, /* the process has grown by more than what came explains */
    FETCH_TRIAL_PASSED
};

/** Knows what reading a partition did earlier. Intake thread, from inside poll(). */
struct fetch_guard {
    enum fetch_verdict (*ask)(void *context, const char *topic, int32_t partition, int64_t offset);
    void (*tell)(void *context, enum fetch_event event, const char *topic, int32_t partition);
    void *context;
};

/** The first member of each kind of source. */
struct source {
    const struct source_operations *operations;
    source_on_revoked *on_revoked; /* NULL: not watched */
    void *on_revoked_context;
    source_on_committed *on_committed; /* NULL: not watched */
    void *on_committed_context;
    struct fetch_guard guard; /* without functions: everything may be read */
    atomic_uint_fast64_t expired_count, rebalance_count;
    enum source_group group; /* for the caller of poll() */
};

/** Before the first poll(). */
static inline void source_watch_revoked(
    struct source *source, source_on_revoked *on_revoked, void *context) {
    source->on_revoked = on_revoked;
    source->on_revoked_context = context;
}

/** Before the first poll(). */
static inline void source_watch_committed(
    struct source *source, source_on_committed *on_committed, void *context) {
    source->on_committed = on_committed;
    source->on_committed_context = context;
}

/** Before the first poll(). */
static inline void source_guard_fetches(struct source *source, const struct fetch_guard *guard) {
    source->guard = *guard;
}

/** For the kinds of source. */
MUST_CHECK static inline enum fetch_verdict source_ask_guard(
    const struct source *source, const char *topic, int32_t partition, int64_t offset) {
    const struct fetch_guard *guard = &source->guard;
    return guard->ask != NULL ? guard->ask(guard->context, topic, partition, offset) : FETCH_READ;
}

/** For the kinds of source. */
static inline void source_tell_guard(
    const struct source *source, enum fetch_event event, const char *topic, int32_t partition) {
    const struct fetch_guard *guard = &source->guard;
    if (guard->tell != NULL) guard->tell(guard->context, event, topic, partition);
}

static inline void source_tell_committed(
    const struct source *source, const char *topic, int32_t partition, int64_t next) {
    if (source->on_committed != NULL)
        source->on_committed(source->on_committed_context, topic, partition, next);
}

/** For the kinds of source: tells the watcher. */
static inline void source_tell_revoked(
    const struct source *source, const char *topic, int32_t partition) {
    if (source->on_revoked != NULL)
        source->on_revoked(source->on_revoked_context, topic, partition);
}

/** For the kinds of source: so many messages were deleted before they could be read. */
static inline void source_add_expired(struct source *source, uint64_t count) {
    /* relaxed: a count that orders nothing */
    atomic_fetch_add_explicit(&source->expired_count, count, memory_order_relaxed);
}

/** Since the source was created. Any thread. */
static inline uint64_t source_expired_count(struct source *source) {
    return atomic_load_explicit(&source->expired_count, memory_order_relaxed); /* as above */
}

/** For the kinds of source: the group has given partitions, or none, to this member once more. */
static inline void source_add_rebalance(struct source *source) {
    atomic_fetch_add_explicit(&source->rebalance_count, 1, memory_order_relaxed); /* as above */
}

/** Since the source was created. Any thread. */
static inline uint64_t source_rebalance_count(struct source *source) {
    return atomic_load_explicit(&source->rebalance_count, memory_order_relaxed); /* as above */
}

MUST_CHECK static inline enum err source_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    return source->operations->poll(source, timeout_ms, ret, at_end, err);
}

static inline void source_pause(struct source *source, bool paused) {
    source->operations->pause(source, paused);
}

static inline void source_finish(struct source *source, const struct position *position) {
    source->operations->finish(source, position);
}

static inline bool source_keeps(const struct source *source, const struct position *position) {
    return source->operations->keeps == NULL || source->operations->keeps(source, position);
}

MUST_CHECK static inline bool source_start(struct source *source, const struct position *position) {
    return source->operations->start == NULL || source->operations->start(source, position);
}

static inline void source_put_back(struct source *source, const struct position *position) {
    if (source->operations->put_back != NULL) source->operations->put_back(source, position);
}

static inline void source_get_totals(const struct source *source, struct offsets_totals *ret) {
    *ret = (struct offsets_totals){0};
    if (source->operations->get_totals != NULL) source->operations->get_totals(source, ret);
}

static inline void source_each_partition(
    const struct source *source, source_visit_partition *visit, void *context) {
    if (source->operations->each_partition != NULL)
        source->operations->each_partition(source, visit, context);
}

MUST_CHECK static inline enum err source_close(
    struct source *source, int timeout_ms, struct error *err) {
    return source->operations->close(source, timeout_ms, err);
}

static inline void source_destroy(struct source *source) {
    if (source != NULL) source->operations->destroy(source);
}

#endif

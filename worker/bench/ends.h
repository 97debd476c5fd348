/**
 * The source and the sink of a benched worker, in memory or wrapped around another source, and the
 * clock that they share.
 *
 * The time runs from the first message after the warm-up, which starts when all of the warm-up is
 * finished, until the last message is finished: until its answer is acknowledged.
 *
 * Lifetime: struct bench_clock must outlive the sources. Threads: as sources and sinks; read the
 * clock when the run is over.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stdatomic.h>

#include "base/ring.h"
#include "broker/sink.h"
#include "broker/source.h"
#include "settings/settings.h"
#include "state/state.h"

struct board;

struct bench_clock {
    uint64_t warm_up, total; /* messages; `total` includes the warm-up */
    uint64_t started_ns, ended_ns;
    uint64_t started_cpu_ns, ended_cpu_ns; /* CPU time of the process */
    /**
     * If messages are delivered one at a time: how long each measured one took. NULL: not noted.
     */
    uint64_t *samples;
    uint64_t issued_ns; /* the last message, with samples */
    /** Called when the time begins and when it ends, by the thread that notices. May be NULL. */
    void (*on_edge)(bool is_end);
    /** On a line of its own: one thread writes it for each message, and others read the rest. */
    _Alignas(2 * CACHE_LINE_BYTES) atomic_uint_fast64_t finished;
};

/** Initialises a clock without samples and without on_edge. */
void bench_clock_init(struct bench_clock *clock, uint64_t warm_up, uint64_t measured);

/** Nanoseconds per measured message. */
double bench_clock_ns_each(const struct bench_clock *clock);
/** The process's CPU time for each, in nanoseconds; only with bench_counting(). */
double bench_clock_cpu_ns_each(const struct bench_clock *clock);

/**
 * How many messages in a row have the same key, of all keys in turn; BENCH_NO_KEYS: messages have
 * no key.
 */
enum { BENCH_NO_KEYS = 0, BENCH_KEYS = 64 };

/** What a source in memory delivers. All payloads must outlive it. */
struct bench_feed {
    const struct slice *firsts; /* delivered once, before the others; NULL: nothing is */
    size_t first_count;
    const struct slice *payloads; /* in turn, again and again */
    size_t payload_count;
    uint64_t at_once; /* at most so many are unfinished at a time */
    uint64_t messages_a_key;
    uint32_t keys, partitions; /* how many of each; 0: BENCH_KEYS, and one partition */
};

/** Delivers as many messages as the clock says. NULL when memory is short. */
struct source *bench_source(struct bench_clock *clock, const struct bench_feed *feed);

/** Acknowledges everything at once. NULL when memory is short. */
struct sink *bench_sink(void);

/**
 * Wraps `inner`, which it owns, and ends when as many messages as the clock says are finished. NULL
 * when memory is short.
 */
struct source *bench_counting(struct bench_clock *clock, struct source *inner);

/**
 * Runs the worker with this source and sink, which it owns; NULL means that there was no memory for
 * one. It counts on `board`; NULL: on one of its own. Errors: ERR_INTERNAL, if a job failed; or as
 * executor_run().
 */
MUST_CHECK enum err bench_run(const struct settings *settings, struct source *source,
    struct sink *sink, struct state *state, struct board *board, struct error *err);

#endif

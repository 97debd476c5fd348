/**
 * What a bench puts in front of the worker and behind it: a source and a sink in memory, or a
 * source around another, and the clock that they keep.
 *
 * Time is taken from the first message after the warm-up, which begins when all of the warm-up is
 * finished, until the last one is finished: when its answer is acknowledged.
 *
 * Lifetime: struct bench_clock outlives the sources. Threads: as sources and sinks; the clock is
 * read when the run is over.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stdatomic.h>

#include "broker/sink.h"
#include "broker/source.h"
#include "settings/settings.h"
#include "state/state.h"

struct bench_clock {
    uint64_t warm_up, total; /* messages; `total` includes the warm-up */
    uint64_t started_ns, ended_ns;
    atomic_uint_fast64_t finished;
    /** Where messages go one at a time: how long each measured one took. NULL: not noted. */
    uint64_t *samples;
    uint64_t issued_ns; /* the last message */
    /** Called when time begins and when it ends, by the thread that sees it. NULL: nobody. */
    void (*on_edge)(bool is_end);
};

/** Without samples, and without anybody to call. */
void bench_clock_init(struct bench_clock *clock, uint64_t warm_up, uint64_t measured);

/** Nanoseconds a measured message. */
double bench_clock_ns_each(const struct bench_clock *clock);

/** Messages without a key; or of BENCH_KEYS keys in turn, each for so many messages. */
enum { BENCH_NO_KEYS = 0, BENCH_KEYS = 64 };

/**
 * Brings `payload`, which outlives it, as often as the clock says, at most `at_once` unfinished at
 * a time. NULL when memory is short.
 */
struct source *bench_source(
    struct bench_clock *clock, struct slice payload, uint64_t at_once, uint64_t messages_a_key);

/** Acknowledges everything at once. NULL when memory is short. */
struct sink *bench_sink(void);

/**
 * Around `inner`, owned: the clock starts with its first message, and it ends when as many as the
 * clock says are finished. NULL when memory is short.
 */
struct source *bench_counting(struct bench_clock *clock, struct source *inner);

/**
 * Runs the worker between two ends, which it owns; NULL stands for one that there was no memory
 * for. ERR_INTERNAL where a job failed, or as executor_run().
 */
MUST_CHECK enum err bench_run(const struct settings *settings, struct source *source,
    struct sink *sink, struct state *state, struct error *err);

#endif

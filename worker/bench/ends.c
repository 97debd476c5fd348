#include "bench/ends.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/cpu_time.h"
#include "pipeline/executor.h"

/* --- the clock --- */

void bench_clock_init(struct bench_clock *clock, uint64_t warm_up, uint64_t measured) {
    *clock = (struct bench_clock){.warm_up = warm_up, .total = warm_up + measured};
    atomic_init(&clock->finished, 0);
}

double bench_clock_ns_each(const struct bench_clock *clock) {
    return (double)(clock->ended_ns - clock->started_ns) / (double)(clock->total - clock->warm_up);
}

double bench_clock_cpu_ns_each(const struct bench_clock *clock) {
    return (double)(clock->ended_cpu_ns - clock->started_cpu_ns) /
           (double)(clock->total - clock->warm_up);
}

static uint64_t finished(struct bench_clock *clock) {
    /* acquire: pairs with the release in finish_one(); what was finished is in memory */
    return atomic_load_explicit(&clock->finished, memory_order_acquire);
}

/* False when the time is up. */
static bool wait_until_finished(struct bench_clock *clock, uint64_t count, int timeout_ms) {
    uint64_t until_ns = clock_ns_in((uint64_t)timeout_ms);
    while (finished(clock) < count) {
        if (clock_ns() >= until_ns) return false;
        sched_yield();
    }
    return true;
}

/* Before the message counts as finished: until then no other is issued. */
static void note_sample(struct bench_clock *clock) {
    /* relaxed: where messages go one at a time, what finished the last one issued this one */
    uint64_t before = atomic_load_explicit(&clock->finished, memory_order_relaxed);
    if (clock->samples != NULL && before >= clock->warm_up)
        clock->samples[before - clock->warm_up] = clock_ns() - clock->issued_ns;
}

static void finish_one(struct bench_clock *clock) {
    note_sample(clock);
    /* release: pairs with the acquire in finished() */
    uint64_t count = atomic_fetch_add_explicit(&clock->finished, 1, memory_order_release) + 1;
    if (count != clock->total) return;
    clock->ended_ns = clock_ns();
    clock->ended_cpu_ns = cpu_time_process_ns();
    if (clock->on_edge != NULL) clock->on_edge(true);
}

/* --- a source in memory --- */

struct memory_source {
    struct source source;
    struct bench_clock *clock;
    struct bench_feed feed;
    uint32_t *keys; /* `feed.keys` numbers */
    uint64_t issued;
    bool is_paused;
};

/* The message is lent, so its key is in memory that outlives it. */
static struct slice key_of(const struct memory_source *memory) {
    if (memory->feed.messages_a_key == BENCH_NO_KEYS) return slice_of(NULL, 0);
    uint64_t number = memory->issued / memory->feed.messages_a_key % memory->feed.keys;
    return slice_of(&memory->keys[number], sizeof memory->keys[number]);
}

static struct slice payload_of(const struct memory_source *memory) {
    const struct bench_feed *feed = &memory->feed;
    if (memory->issued < feed->first_count) return feed->firsts[memory->issued];
    return feed->payloads[(memory->issued - feed->first_count) % feed->payload_count];
}

/* Each partition has offsets of its own. */
static struct position position_of(const struct memory_source *memory) {
    uint32_t partitions = memory->feed.partitions;
    return (struct position){.topic = "bench",
        .partition = (int32_t)(memory->issued % partitions),
        .offset = (int64_t)(memory->issued / partitions)};
}

/* Waits until another message may be delivered; false when the time is up. */
static bool wait_for_turn(const struct memory_source *memory, int timeout_ms) {
    bool is_first = memory->issued == memory->clock->warm_up;
    uint64_t unfinished_max = is_first ? 0 : memory->feed.at_once - 1;
    if (memory->issued <= unfinished_max) return true;
    return wait_until_finished(memory->clock, memory->issued - unfinished_max, timeout_ms);
}

static enum err memory_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    struct memory_source *memory = (struct memory_source *)source;
    *ret = NULL;
    *at_end = memory->issued == memory->clock->total;
    if (*at_end || memory->is_paused || !wait_for_turn(memory, timeout_ms)) return ERR_OK;
    bool is_edge = memory->issued == memory->clock->warm_up;
    if (is_edge && memory->clock->on_edge != NULL) memory->clock->on_edge(false);
    uint64_t now_ns = clock_ns();
    if (memory->clock->samples != NULL) memory->clock->issued_ns = now_ns;
    if (is_edge) memory->clock->started_ns = now_ns;
    const struct delivery message = {.position = position_of(memory),
        .received_ns = now_ns,
        .has_key = memory->feed.messages_a_key != BENCH_NO_KEYS,
        .key = key_of(memory),
        .payload = payload_of(memory)};
    *ret = delivery_lend(&message, (struct loan){0});
    if (*ret == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "lower limits.bytes_in_flight",
            "no memory for a message of %zu bytes", message.payload.size);
    memory->issued++;
    return ERR_OK;
}

/* Limits hold here, too: otherwise large jobs would take all memory of the machine. */
static void memory_pause(struct source *source, bool paused) {
    ((struct memory_source *)source)->is_paused = paused;
}

static void memory_finish(struct source *source, const struct position *position) {
    finish_one(((struct memory_source *)source)->clock);
}

static enum err memory_close(struct source *source, int timeout_ms, struct error *err) {
    return ERR_OK;
}

static void memory_destroy(struct source *source) {
    free(((struct memory_source *)source)->keys);
    free(source);
}

struct source *bench_source(struct bench_clock *clock, const struct bench_feed *feed) {
    static const struct source_operations operations = {.poll = memory_poll,
        .pause = memory_pause,
        .finish = memory_finish,
        .close = memory_close,
        .destroy = memory_destroy};
    struct memory_source *memory = calloc(1, sizeof *memory);
    if (memory == NULL) return NULL;
    memory->source.operations = &operations;
    memory->clock = clock;
    memory->feed = *feed;
    if (feed->keys == 0) memory->feed.keys = BENCH_KEYS;
    if (feed->partitions == 0) memory->feed.partitions = 1;
    memory->keys = calloc(memory->feed.keys, sizeof memory->keys[0]);
    if (memory->keys == NULL) {
        free(memory);
        return NULL;
    }
    for (uint32_t i = 0; i < memory->feed.keys; i++) memory->keys[i] = i;
    return &memory->source;
}

/* --- a sink that acknowledges at once --- */

static void memory_send(struct sink *sink, struct record *record) {
    record->on_settled(record, ERR_OK, NULL);
}

static bool memory_takes_at_once(struct sink *sink, const struct record *record) {
    return true;
}

static void memory_serve(struct sink *sink, int timeout_ms) {}

static enum err memory_flush(struct sink *sink, int timeout_ms, struct error *err) {
    return ERR_OK;
}

static void memory_sink_destroy(struct sink *sink) {
    free(sink);
}

struct sink *bench_sink(void) {
    static const struct sink_operations operations = {.send = memory_send,
        .takes_at_once = memory_takes_at_once,
        .serve = memory_serve,
        .flush = memory_flush,
        .destroy = memory_sink_destroy};
    struct sink *sink = calloc(1, sizeof *sink);
    if (sink != NULL) sink->operations = &operations;
    return sink;
}

/* --- around another source --- */

struct counting_source {
    struct source source;
    struct bench_clock *clock;
    struct source *inner;
    uint64_t delivered;
};

static enum err counting_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    struct counting_source *counting = (struct counting_source *)source;
    struct bench_clock *clock = counting->clock;
    enum err code = ERR_OK;
    *ret = NULL;
    if (counting->delivered != clock->warm_up ||
        wait_until_finished(clock, clock->warm_up, timeout_ms))
        code = source_poll(counting->inner, timeout_ms, ret, at_end, err);
    if (*ret != NULL && counting->delivered++ == clock->warm_up) {
        clock->started_ns = clock_ns();
        clock->started_cpu_ns = cpu_time_process_ns();
    }
    *at_end = finished(clock) >= clock->total;
    return code;
}

static void counting_pause(struct source *source, bool paused) {
    source_pause(((struct counting_source *)source)->inner, paused);
}

static void counting_finish(struct source *source, const struct position *position) {
    struct counting_source *counting = (struct counting_source *)source;
    source_finish(counting->inner, position);
    finish_one(counting->clock);
}

static bool counting_keeps(const struct source *source, const struct position *position) {
    return source_keeps(((const struct counting_source *)source)->inner, position);
}

static bool counting_start(struct source *source, const struct position *position) {
    return source_start(((struct counting_source *)source)->inner, position);
}

static void counting_put_back(struct source *source, const struct position *position) {
    source_put_back(((struct counting_source *)source)->inner, position);
}

static enum err counting_close(struct source *source, int timeout_ms, struct error *err) {
    return source_close(((struct counting_source *)source)->inner, timeout_ms, err);
}

static void counting_destroy(struct source *source) {
    source_destroy(((struct counting_source *)source)->inner);
    free(source);
}

struct source *bench_counting(struct bench_clock *clock, struct source *inner) {
    static const struct source_operations operations = {.poll = counting_poll,
        .pause = counting_pause,
        .finish = counting_finish,
        .keeps = counting_keeps,
        .start = counting_start,
        .put_back = counting_put_back,
        .close = counting_close,
        .destroy = counting_destroy};
    struct counting_source *counting = calloc(1, sizeof *counting);
    if (counting == NULL) {
        source_destroy(inner);
        return NULL;
    }
    counting->source.operations = &operations;
    counting->clock = clock;
    counting->inner = inner;
    return &counting->source;
}

/* --- the worker between them --- */

enum err bench_run(const struct settings *settings, struct source *source, struct sink *sink,
    struct state *state, struct board *board, struct error *err) {
    static const atomic_bool stop;
    struct executor_summary summary;
    const struct executor_options options = {.settings = settings,
        .life = {.source = source, .sink = sink, .state = state},
        .board = board,
        .stop = &stop};
    if (source == NULL || sink == NULL) {
        source_destroy(source);
        sink_destroy(sink);
        return error_no_memory(err, "no memory for a bench");
    }
    enum err code = executor_run(&options, &summary, err);
    if (code == ERR_OK && summary.errors > 0)
        code = error_set(err, ERR_INTERNAL, 0, "run one such job alone to see why",
            "%" PRIu64 " of the bench's jobs failed", summary.errors);
    return code;
}

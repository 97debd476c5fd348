#include "execute/lane.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"

struct lane {
    struct lanes *lanes;
    pthread_t thread;
    struct batch batch;
    struct prepared **jobs; /* room for one batch */
};

struct lanes {
    struct lanes_options options;
    atomic_uint_fast64_t batch_id; /* the last one given out */
    uint32_t started;              /* threads that run */
    struct lane items[];
};

/* A job whose time has passed is answered without being run. */
static bool is_expired(const struct prepared *prepared) {
    uint64_t deadline = prepared->job->deadline_unix_ms;
    return deadline != 0 && clock_unix_ms() > deadline;
}

static void expire(const struct lanes *lanes, struct prepared *prepared) {
    struct outcome outcome = {0};
    uint64_t now = clock_unix_ms();
    outcome.code = error_set(&outcome.err, ERR_DEADLINE_EXCEEDED, 0,
        "send it with a later deadline, or add workers",
        "the job was still waiting %" PRIu64 " ms after its deadline",
        now - prepared->job->deadline_unix_ms);
    outcome.telemetry.wall_ns = clock_ns() - prepared->job->delivery->received_ns;
    lanes->options.on_done(lanes->options.context, prepared, &outcome);
}

/* Takes the next jobs that are worth running; 0 once the queue is closed and empty. */
static size_t take_jobs(struct lane *lane) {
    const struct lanes_options *options = &lane->lanes->options;
    size_t count = 0;
    while (count == 0) {
        size_t popped = queue_pop(options->ready, (void **)lane->jobs, options->batch_jobs_max, -1);
        if (popped == 0) return 0;
        for (size_t i = 0; i < popped; i++) {
            if (is_expired(lane->jobs[i])) expire(lane->lanes, lane->jobs[i]);
            else lane->jobs[count++] = lane->jobs[i];
        }
    }
    return count;
}

static void *lane_thread(void *context) {
    struct lane *lane = context;
    struct lanes *lanes = lane->lanes;
    struct error err;
    enum err code = device_bind(lanes->options.device, &err);
    size_t count = 0;
    while (code == ERR_OK && (count = take_jobs(lane)) > 0) {
        /* relaxed: only uniqueness matters */
        uint64_t id = atomic_fetch_add_explicit(&lanes->batch_id, 1, memory_order_relaxed) + 1;
        code = batch_run(&lane->batch, lane->jobs, count, id, &err);
        for (size_t i = 0; i < count && code == ERR_OK; i++)
            lanes->options.on_done(
                lanes->options.context, lane->jobs[i], &lane->batch.items[i].outcome);
    }
    if (code != ERR_OK) lanes->options.on_lost(lanes->options.context, lane->jobs, count, &err);
    return NULL;
}

static enum err lane_init(struct lane *lane, struct lanes *lanes, struct error *err) {
    const struct lanes_options *options = &lanes->options;
    lane->lanes = lanes;
    lane->jobs = calloc(options->batch_jobs_max, sizeof lane->jobs[0]);
    if (lane->jobs == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a lane");
    return batch_init(
        &lane->batch, options->device, options->slab_bytes, options->batch_jobs_max, err);
}

enum err lanes_start(const struct lanes_options *options, struct lanes **ret, struct error *err) {
    struct lanes *lanes = calloc(1, sizeof *lanes + options->count * sizeof lanes->items[0]);
    if (lanes == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the lanes");
    lanes->options = *options;
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < options->count && code == ERR_OK; i++)
        code = lane_init(&lanes->items[i], lanes, err);
    for (; lanes->started < options->count && code == ERR_OK; lanes->started++) {
        struct lane *lane = &lanes->items[lanes->started];
        int native = pthread_create(&lane->thread, NULL, lane_thread, lane);
        if (native != 0)
            code = error_set(err, ERR_NO_MEMORY, native, "raise the limit on threads",
                "cannot start lane %" PRIu32, lanes->started);
        if (code != ERR_OK) break;
    }
    if (code != ERR_OK) lanes_stop(lanes);
    else *ret = lanes;
    return code;
}

void lanes_stop(struct lanes *lanes) {
    if (lanes == NULL) return;
    queue_close(lanes->options.ready);
    for (uint32_t i = 0; i < lanes->started; i++) pthread_join(lanes->items[i].thread, NULL);
    for (uint32_t i = 0; i < lanes->options.count; i++) {
        batch_fini(&lanes->items[i].batch);
        free(lanes->items[i].jobs);
    }
    free(lanes);
}

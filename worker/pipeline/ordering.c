#include "pipeline/ordering.h"

#include "pipeline/ends.h"
#include "pipeline/flow.h"

enum { KEY_SHARE = 4 /* of the jobs in flight, where the configuration says nothing else */ };

_Static_assert(
    (int)KEY_ORDER_GROUP_MAX <= (int)STAGES_GROUP_MAX, "what passes together is planned together");

static size_t width_of(const struct settings *settings) {
    uint32_t jobs = settings->limits.jobs_per_key;
    if (settings->ordering == ORDERING_KEY) return 1;
    if (jobs == 0) jobs = settings->limits.jobs_in_flight / KEY_SHARE;
    return jobs > 0 ? jobs : 1;
}

static void on_start(void *context) {
    struct stages *stages = context;
    struct error err;
    if (device_bind(&stages->device, &err) != ERR_OK) stages_fail(stages, &err);
}

static bool on_passed(void *context, struct job *const *jobs, size_t count) {
    struct stages *stages = context;
    if (stages_has_failed(stages)) return false;
    flow_plan(stages, jobs, count);
    return true;
}

enum err ordering_start(struct stages *stages, struct key_order **ret, struct error *err) {
    const struct key_order_options options = {.width = width_of(stages->settings),
        .jobs_max = stages_jobs_max(stages),
        .on_start = on_start,
        .on_passed = on_passed,
        .on_dropped = ends_on_dropped,
        .context = stages};
    return key_order_start(&options, ret, err);
}

bool ordering_enter(struct stages *stages, struct job *job) {
    struct error err;
    bool passes = true;
    if (key_order_enter(stages->key_order, job, &passes, &err) == ERR_OK) return passes;
    job_reject(stages, job, &err);
    return false;
}

uint64_t ordering_count_aside(const struct stages *stages) {
    size_t count = key_order_waiting_count(stages->key_order);
    return count < ASIDE_MAX ? count : ASIDE_MAX;
}

void ordering_hand_back(struct stages *stages, const char *topic, int32_t partition) {
    struct job *next, *job = key_order_take_waiting(stages->key_order, topic, partition);
    for (; job != NULL; job = next) {
        next = job->next_in_key_queue;
        job_end(stages, job, END_HANDED_BACK);
    }
}

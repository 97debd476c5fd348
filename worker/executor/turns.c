#include "executor/turns.h"

#include <stdlib.h>

#include "base/crew.h"
#include "executor/flow.h"

enum { KEY_SHARE = 4 /* of the jobs in flight, where the configuration says nothing else */ };

struct turns {
    struct stages *stages;
    struct gate *gate;
    struct queue *passed; /* of struct job: their turn has come */
    struct crew *crew;
};

static void drop(struct turns *turns, struct job *job) {
    struct gate_line *line = job->line;
    flow_end_carrying(turns->stages, job, true);
    job_destroy(job);
    turns_leave(turns, line);
}

static void run_turns(void *context, uint32_t index) {
    struct turns *turns = context;
    struct error err;
    void *passed[FLOW_GROUP_MAX];
    size_t count;
    if (device_bind(&turns->stages->device, &err) != ERR_OK) flow_fail(turns->stages, &err);
    while ((count = queue_pop(turns->passed, passed, FLOW_GROUP_MAX, -1)) > 0) {
        if (!flow_has_failed(turns->stages))
            flow_plan(turns->stages, (struct job *const *)passed, count);
        else
            for (size_t i = 0; i < count; i++) drop(turns, passed[i]);
    }
}

static size_t width_of(const struct settings *settings) {
    uint32_t jobs = settings->limits.jobs_per_key;
    if (settings->ordering == ORDERING_KEY) return 1;
    if (jobs == 0) jobs = settings->limits.jobs_in_flight / KEY_SHARE;
    return jobs > 0 ? jobs : 1;
}

enum err turns_start(struct stages *stages, struct turns **ret, struct error *err) {
    struct turns *turns = calloc(1, sizeof *turns);
    if (turns != NULL) turns->passed = queue_create(stages_jobs_max(stages));
    if (turns == NULL || turns->passed == NULL) {
        free(turns);
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for the queue of jobs whose turn has come");
    }
    turns->stages = stages;
    const struct crew_options crew = {
        .name = "turns", .count = 1, .run = run_turns, .context = turns};
    enum err code = gate_create(width_of(stages->settings), &turns->gate, err);
    if (code == ERR_OK) code = crew_start(&crew, &turns->crew, err);
    if (code == ERR_OK) *ret = turns;
    else turns_destroy(turns);
    return code;
}

void turns_finish(struct turns *turns) {
    if (turns == NULL) return;
    queue_close(turns->passed);
    crew_join(&turns->crew);
}

void turns_destroy(struct turns *turns) {
    if (turns == NULL) return;
    gate_destroy(turns->gate);
    queue_destroy(turns->passed);
    free(turns);
}

bool turns_enter(struct stages *stages, struct job *job) {
    struct error err;
    bool passes = true;
    if (gate_enter(stages->turns->gate, job, &passes, &err) == ERR_OK) return passes;
    flow_reject(stages, job, &err);
    return false;
}

struct job *turns_take_next(struct turns *turns, struct gate_line *line) {
    return gate_leave(turns->gate, line);
}

uint64_t turns_count_aside(struct turns *turns) {
    size_t count = gate_waiting_count(turns->gate);
    return count < ASIDE_MAX ? count : ASIDE_MAX;
}

size_t turns_hand_back(struct turns *turns, const char *topic, int32_t partition) {
    size_t count = 0;
    struct job *next, *job = gate_take_waiting(turns->gate, topic, partition);
    for (; job != NULL; job = next, count++) {
        next = job->next_in_line;
        flow_hand_back(turns->stages, job);
    }
    return count;
}

void turns_leave(struct turns *turns, struct gate_line *line) {
    struct job *next = turns_take_next(turns, line);
    /* Once the queue is closed, which is after a failure, the whole line is dropped here. */
    while (next != NULL && !queue_push(turns->passed, next)) {
        flow_end_carrying(turns->stages, next, true);
        job_destroy(next);
        next = gate_leave(turns->gate, line);
    }
}

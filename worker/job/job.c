#include "job/job.h"

#include <stdlib.h>

#include "base/invariant.h"

static const struct {
    const char *name;
    uint32_t next; /* states, as bits */
} states[] = {
#define IN(symbol) (1u << JOB_##symbol)
#define X(symbol, name, next) [JOB_##symbol] = {name, next},
    JOB_STATE_LIST(X)
#undef X
#undef IN
};

struct job *job_create(struct delivery *delivery) {
    struct job *job = calloc(1, sizeof *job);
    if (job != NULL) job->delivery = delivery;
    return job;
}

void job_destroy(struct job *job) {
    if (job == NULL) return;
    struct shared *edition = job->edition;
    job_move(job, JOB_OVER);
    arena_fini(&job->arena);
    delivery_destroy(job->delivery);
    free(job);
    shared_release(edition);
}

void job_move(struct job *job, enum job_state to) {
    INVARIANT((states[job->state].next >> to & 1) != 0, "a job moves as the table of states says");
    job->state = to;
}

const char *job_state_name(enum job_state state) {
    return states[state].name;
}

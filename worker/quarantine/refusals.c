#include "quarantine/refusals.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* Whether an earlier step names the same program. */
static bool is_repeated(const struct job *job, size_t step) {
    for (size_t i = 0; i < step; i++)
        if (slice_equal(job->steps[i].program, job->steps[step].program)) return true;
    return false;
}

/* Against each program that it names. */
static void convict_programs(
    const struct refusals *refusals, const struct delivery *delivery, const struct job *job) {
    uint64_t now_ms = clock_unix_ms();
    size_t before = suspensions_count(refusals->state, SUSPENSION_PROGRAM, now_ms);
    for (size_t i = 0; i < job->step_count; i++)
        if (!is_repeated(job, i))
            suspensions_convict(
                refusals->state, &refusals->rules, delivery->key, job->steps[i].program, now_ms);
    if (suspensions_count(refusals->state, SUSPENSION_PROGRAM, now_ms) > before)
        log_event(LOG_WARN, LOG_EVENT("suspended"),
            "a program is suspended for %" PRIu32 " s: too many of its jobs were convicted; "
            "gpu-worker resume shows it",
            refusals->rules.for_ms / 1000);
}

bool refusals_note_conviction(
    const struct refusals *refusals, const struct delivery *delivery, const struct job *job) {
    if (!suspects_count_conviction(refusals->suspects, &delivery->position)) return false;
    /* of some instances, the deaths were counted one by one */
    bool is_of_all = job == NULL || job->outcome.code != ERR_INSTANCES_FAILED;
    if (is_of_all) suspects_count_death(refusals->suspects, &refusals->rules, delivery->key);
    if (job != NULL) convict_programs(refusals, delivery, job);
    return true;
}

void refusals_note_acquittal(const struct refusals *refusals, const struct job *job) {
    const struct job_telemetry *telemetry = &job->outcome.telemetry;
    uint64_t ms = (telemetry->enqueue_ns + telemetry->wait_ns) / 1000000;
    bool is_new = false;
    /* as many like it would take half of the time that one may: alone, on a machine that has less
     * to do, each is quicker than it was */
    if (job->outcome.code != ERR_OK || job->array != NULL || job->instances > 0 ||
        job->long_job != NULL || 2 * ms * suspects_hung_with(refusals->suspects) < job->timeout_ms)
        return;
    for (size_t i = 0; i < job->step_count; i++)
        if (state_note_uneven(refusals->state, job->steps[i].program, job->steps[i].entry))
            is_new = true;
    if (!is_new) return;
    suspects_count_death(refusals->suspects, &refusals->rules, job->delivery->key);
    log_event(LOG_WARN, LOG_EVENT("uneven"),
        "a batch took too long, and one of its jobs %" PRIu64
        " ms alone: few jobs of its kernels share a batch from now on",
        ms);
}

void refusals_note_success(const struct refusals *refusals, const struct job *job) {
    if (job->delivery->key.size == 0 || refusals->rules.convictions == 0) return;
    uint64_t now_ms = clock_unix_ms();
    for (size_t i = 0; i < job->step_count; i++)
        if (!is_repeated(job, i))
            suspensions_praise(refusals->state, job->delivery->key, job->steps[i].program, now_ms);
}

static enum err refuse(
    struct error *err, const char *whose, const char *option, uint64_t until_ms, uint64_t now_ms) {
    char fix[sizeof err->fix];
    snprintf(fix, sizeof fix,
        "correct these jobs and send them again in %" PRIu64
        " s, or ask for gpu-worker resume %s where the worker runs",
        (until_ms - now_ms) / 1000 + 1, option);
    return error_set(err, ERR_SUSPENDED, 0, fix,
        "%s is suspended because too many of its jobs ended an executor", whose);
}

enum err refusals_check(const struct refusals *refusals, const struct job *job, struct error *err) {
    if (!suspensions_may_apply(refusals->state)) return ERR_OK;
    struct slice key = job->delivery->key;
    uint64_t now_ms = clock_unix_ms();
    uint64_t until_ms = suspensions_key_until(refusals->state, key, now_ms);
    if (until_ms != 0) return refuse(err, "the key of this job", "--key KEY", until_ms, now_ms);
    for (size_t i = 0; i < job->step_count; i++) {
        struct slice program = job->steps[i].program;
        until_ms = suspensions_program_until(refusals->state, key, program, now_ms);
        if (until_ms == 0) continue;
        char whose[192];
        snprintf(whose, sizeof whose, "program '%.*s'", SLICE_TEXT(program));
        return refuse(err, whose, "--program NAME", until_ms, now_ms);
    }
    return ERR_OK;
}

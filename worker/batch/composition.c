#include "batch/composition.h"

#include "batch/layout.h"

uint64_t composition_signature(const struct job *job) {
    uint64_t signature = job->plan->signature;
    if (job->timing) signature ^= 2;
    if (job->is_applied) signature ^= 4;
    if (job->instances > 0) signature ^= 8;
    return signature != 0 ? signature : 1;
}

bool composition_same_signature(const struct job *a, const struct job *b) {
    return composition_signature(a) == composition_signature(b);
}

bool composition_runs_alone(const struct job *job) {
    return job->retry_count > 0 || job->long_job != NULL;
}

bool composition_same_group(const struct job *a, const struct job *b) {
    return composition_same_signature(a, b) && slice_equal(a->tenant, b->tenant) &&
           !composition_runs_alone(a) && !composition_runs_alone(b);
}

bool composition_is_uneven(const struct state *state, const struct job *job) {
    bool is_one = false;
    if (!state_has_unevens(state) || job->instances > 0) return false;
    for (size_t i = 0; i < job->step_count && !is_one; i++)
        is_one = state_is_uneven(state, job->steps[i].program, job->steps[i].entry);
    return is_one;
}

uint64_t composition_allowance(struct job *const *jobs, size_t count, uint64_t span_ns) {
    uint64_t total_ms = 0, longest_ms = 0;
    if (!jobs[0]->is_uneven) return span_ns;
    for (size_t i = 0; i < count; i++) {
        total_ms += jobs[i]->timeout_ms;
        if (jobs[i]->timeout_ms > longest_ms) longest_ms = jobs[i]->timeout_ms;
    }
    return span_ns + (total_ms - longest_ms) * 1000000;
}

uint64_t composition_job_bytes(const struct composition_limits *limits, const struct job *job) {
    uint64_t bytes = batch_job_bytes(job->plan);
    return bytes < limits->slab_bytes ? bytes : limits->slab_bytes;
}

bool composition_join(struct composition *composition, const struct composition_limits *limits,
    struct durations *durations, const struct job *job) {
    struct composition next = *composition;
    uint64_t signature = composition_signature(job);
    if (signature != next.signature) {
        if (next.run > 0) next.ns += durations_expect(durations, next.signature, next.run);
        next.signature = signature;
        next.run = 0;
    }
    next.run++;
    next.count++;
    next.bytes += composition_job_bytes(limits, job);
    uint64_t run_ns = durations_expect(durations, signature, next.run);
    if (next.count > 1 && (run_ns == DURATIONS_UNKNOWN || next.ns + run_ns > limits->span_ns ||
                              next.bytes > limits->slab_bytes))
        return false;
    *composition = next;
    return true;
}

/* How many jobs from the first on launch the same. */
static size_t run_of(struct job *const *jobs, size_t count) {
    size_t run = 1;
    while (run < count && composition_same_signature(jobs[0], jobs[run])) run++;
    return run;
}

static void learn_parts(
    struct durations *durations, struct job *const *jobs, size_t count, uint64_t ns) {
    uint64_t expected_ns = 0;
    for (size_t i = 0, run; i < count; i += run) {
        run = run_of(jobs + i, count - i);
        expected_ns += durations_expect(durations, composition_signature(jobs[i]), (uint32_t)run);
    }
    for (size_t i = 0, run; i < count; i += run) {
        run = run_of(jobs + i, count - i);
        uint64_t signature = composition_signature(jobs[i]);
        uint64_t own_ns = durations_expect(durations, signature, (uint32_t)run);
        if (own_ns == DURATIONS_UNKNOWN) continue; /* forgotten meanwhile */
        double part = (double)own_ns / (double)expected_ns;
        durations_learn(durations, signature, (uint32_t)run, (uint64_t)((double)ns * part), 0);
    }
}

void composition_learn(struct durations *durations, struct job *const *jobs, size_t count,
    bool is_ok, uint64_t ns, uint32_t beside) {
    const struct job *first = jobs[0];
    uint64_t signature = composition_signature(first);
    uint32_t sharing = first->array != NULL ? first->slice.count : (uint32_t)count;
    bool is_mixed = run_of(jobs, count) < count;
    if (is_mixed && is_ok && beside == 0) learn_parts(durations, jobs, count, ns);
    if (is_mixed) return; /* what failed, or was slowed down, tells nothing of the parts */
    if (is_ok) durations_learn(durations, signature, sharing, ns, beside);
    else durations_guess(durations, signature, ns);
}

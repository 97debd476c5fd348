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
    return job->retry_count > 0;
}

bool composition_same_group(const struct job *a, const struct job *b) {
    return composition_same_signature(a, b) && slice_equal(a->tenant, b->tenant) &&
           !composition_runs_alone(a) && !composition_runs_alone(b);
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

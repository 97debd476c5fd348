/** What the tests of decode/ share: small limits, and a job from bytes. */
#ifndef TESTS_DECODE_DECODING_H
#define TESTS_DECODE_DECODING_H

#include "decode/decode.h"

/** The limits that the golden vectors are made for (schemas/check_job.py has them too). */
static const struct decode_limits golden_limits = {
    .message_bytes_max = 2048,
    .arena_bytes_max = 16384,
    .buffers_max = 8,
    .steps_max = 4,
    .args_max = 8,
    .outputs_max = 8,
    .writes_max = 4,
    .buffer_bytes_max = (uint64_t)1 << 40,
    .array_bytes_max = (uint64_t)1 << 40,
    .launches_max = 1000,
    .instances_max = 100,
    .timeout_ms_min = 100,
    .timeout_ms_max = 60000,
    .long_ms_max = 3600000,
};

/** decode_job() of a job with these bytes; NULL, and nothing is left of it, where it has no id. */
static inline enum err decode_bytes(
    struct slice payload, const struct decode_limits *limits, struct job **ret, struct error *err) {
    const struct delivery message = {.position = {.topic = "jobs"}, .payload = payload};
    struct delivery *delivery = delivery_create(&message);
    *ret = NULL;
    if (delivery == NULL) return error_set(err, ERR_NO_MEMORY, 0, "", "no memory in a test");
    struct job *job = job_create(delivery);
    if (job == NULL) {
        delivery_destroy(delivery);
        return error_set(err, ERR_NO_MEMORY, 0, "", "no memory in a test");
    }
    enum err code = decode_job(job, limits, err);
    if (job->id.size > 0) *ret = job;
    else job_destroy(job);
    return code;
}

#endif

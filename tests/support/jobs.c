#include "support/jobs.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/yaml.h"
#include "decode/job_yaml.h"
#include "testing.h"

struct registry *test_registry(void) {
    struct problems problems;
    problems_init(&problems);
    struct registry *registry = registry_load(GPU_WORKER_PROGRAMS_DIR, &problems);
    problems_print(&problems, "test");
    assert_int_equal(problems.count, 0);
    assert_non_null(registry);
    problems_fini(&problems);
    return registry;
}

struct slice test_job_bytes(const char *yaml) {
    struct problems problems;
    struct error err = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    problems_init(&problems);
    struct yaml_document *document =
        yaml_parse("job", slice_of_text(yaml), YAML_KEEP_VARIABLES, &problems);
    assert_non_null(document);
    enum err code = job_yaml_encode(document, ".", &problems, &bytes, &size, &err);
    problems_print(&problems, "test");
    if (code != ERR_OK) print_message("%s\n", err.message);
    assert_int_equal(code, ERR_OK);
    yaml_destroy(document);
    problems_fini(&problems);
    return slice_of(bytes, size);
}

struct decode_limits test_decode_limits(void) {
    return (struct decode_limits){.message_bytes_max = 1 << 20,
        .long_ms_max = 3600000,
        .arena_bytes_max = 64 << 20,
        .buffers_max = 64,
        .steps_max = 64,
        .args_max = 64,
        .outputs_max = 64,
        .writes_max = 64,
        .buffer_bytes_max = 1ull << 40,
        .array_bytes_max = 1ull << 40,
        .launches_max = 100000,
        .instances_max = 1000000,
        .timeout_ms_max = UINT32_MAX};
}

struct job *test_job(const char *yaml) {
    struct slice bytes = test_job_bytes(yaml);
    struct decode_limits limits = test_decode_limits();
    const struct delivery message = {
        .position = {.topic = "test"}, .received_ns = clock_ns(), .payload = bytes};
    const struct loan loan = {.holds_bytes = SIZE_MAX}; /* the job keeps the bytes */
    struct job *job = job_create(delivery_lend(&message, loan));
    free((void *)(uintptr_t)bytes.data);
    assert_non_null(job);
    assert_non_null(job->delivery);
    struct error err = {0};
    enum err code = decode_job(job, &limits, &err);
    job_move(job, JOB_DECODED);
    if (code != ERR_OK) print_message("%s\n", err.message);
    assert_int_equal(code, ERR_OK);
    return job;
}

#include "bench/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/digest.h"
#include "decode/job_yaml.h"

static enum err encode(const char *yaml, struct slice *ret, struct error *err) {
    struct problems problems;
    uint8_t *bytes = NULL;
    size_t size = 0;
    problems_init(&problems);
    struct yaml_document *document =
        yaml_parse("bench", slice_of_text(yaml), YAML_KEEP_VARIABLES, &problems);
    enum err code = ERR_INTERNAL;
    if (document != NULL) code = job_yaml_encode(document, "/", &problems, &bytes, &size, err);
    if (problems.count > 0)
        code = error_set(err, code, 0, "check that the disk of TMPDIR has room",
            "making a job: %s: %s", problems.items[0].where, problems.items[0].what);
    yaml_destroy(document);
    problems_fini(&problems);
    *ret = slice_of(bytes, size);
    return code;
}

enum err bench_job_nothing(struct slice *ret, struct error *err) {
    return encode("id: bench\n"
                  "buffers: {}\n"
                  "steps: [{program: bench, entry: nothing, args: [{u32: 0}], grid: [1]}]\n"
                  "outputs: []\n",
        ret, err);
}

/* Writes ones to a temporary file. */
static enum err write_ones(uint64_t bytes, char *path, struct error *err) {
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    const float one = 1;
    bool is_written = file != NULL;
    for (uint64_t i = 0; i < bytes && is_written; i += sizeof one)
        is_written = fwrite(&one, sizeof one, 1, file) == 1;
    if (file != NULL && fclose(file) != 0) is_written = false;
    if (is_written) return ERR_OK;
    return error_set(
        err, ERR_IO, 0, "make room there", "%s: %" PRIu64 " bytes cannot be written", path, bytes);
}

/* What stands in a job and in its buffers if it is an array. */
struct array_words {
    char count[32];
    const char *each;
};

static struct array_words array_words_of(uint32_t instances) {
    struct array_words words = {.each = instances > 0 ? "each: true, " : ""};
    if (instances > 0) snprintf(words.count, sizeof words.count, "count: %" PRIu32 "\n", instances);
    return words;
}

enum err bench_job_add(const char *entry, uint64_t buffer_bytes, uint32_t instances,
    struct slice *ret, struct error *err) {
    const struct array_words words = array_words_of(instances);
    char path[] = "/tmp/gpu-worker-bench-XXXXXX", yaml[1024];
    enum err code = write_ones(buffer_bytes * (instances > 0 ? instances : 1), path, err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  x: {%sdata: {file: %s}}\n"
        "  y: {%sdata: {file: %s}}\n"
        "  z: {%sbytes: %" PRIu64 "}\n"
        "steps: [{program: bench, entry: %s, args: [x, y, z, {u32: %" PRIu64
        "}], elements: %" PRIu64 "}]\n"
        "outputs: [{buffer: z}]\n",
        words.count, words.each, path, words.each, path, words.each, buffer_bytes, entry,
        buffer_bytes / sizeof(float), buffer_bytes / sizeof(float));
    if (code == ERR_OK) code = encode(yaml, ret, err);
    unlink(path);
    return code;
}

enum err bench_job_score(uint32_t instances, struct slice *ret, struct error *err) {
    const struct array_words words = array_words_of(instances);
    float table[BENCH_TABLE_BYTES / sizeof(float)];
    char parameters[] = "/tmp/gpu-worker-bench-XXXXXX", ones[] = "/tmp/gpu-worker-bench-XXXXXX";
    char yaml[1024], name[DIGEST_TEXT_SIZE];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) table[i] = 1;
    const struct digest digest = digest_of(slice_of(table, sizeof table));
    uint64_t all = (uint64_t)BENCH_PARAMETERS_BYTES * (instances > 0 ? instances : 1);
    enum err code = write_ones(all, parameters, err);
    if (code != ERR_OK) return code;
    code = write_ones(sizeof table, ones, err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  parameters: {%sdata: {file: %s}}\n"
        "  table: {static: '%s', data: {file: %s}}\n"
        "  scores: {%sbytes: %d}\n"
        "steps: [{program: bench, entry: score, grid: [1],"
        " args: [parameters, table, scores, {u32: %zu}]}]\n"
        "outputs: [{buffer: scores}]\n",
        words.count, words.each, parameters, digest_format(&digest, name), ones, words.each,
        BENCH_SCORES_BYTES, sizeof table / sizeof table[0]);
    if (code == ERR_OK) code = encode(yaml, ret, err);
    unlink(parameters);
    unlink(ones);
    return code;
}

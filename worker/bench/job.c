#include "bench/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

enum err bench_job_add(
    const char *entry, uint64_t buffer_bytes, struct slice *ret, struct error *err) {
    char path[] = "/tmp/gpu-worker-bench-XXXXXX", yaml[1024];
    enum err code = write_ones(buffer_bytes, path, err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n"
        "buffers:\n"
        "  x: {data: {file: %s}}\n"
        "  y: {data: {file: %s}}\n"
        "  z: {bytes: %" PRIu64 "}\n"
        "steps: [{program: bench, entry: %s, args: [x, y, z, {u32: %" PRIu64
        "}], elements: %" PRIu64 "}]\n"
        "outputs: [{buffer: z}]\n",
        path, path, buffer_bytes, entry, buffer_bytes / sizeof(float),
        buffer_bytes / sizeof(float));
    if (code == ERR_OK) code = encode(yaml, ret, err);
    unlink(path);
    return code;
}

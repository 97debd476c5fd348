#include "bench/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/temporary.h"
#include "decode/job_yaml.h"

/* Where the bytes of large buffers stand until the job is encoded. */
static const char *const data_names[] = {"x", "y"};
enum { DATA_PATH_SIZE = TEMPORARY_PATH_SIZE + 2 };

static const char *data_path(
    const char *folder, const char *name, char ret[static DATA_PATH_SIZE]) {
    snprintf(ret, DATA_PATH_SIZE, "%s/%s", folder, name);
    return ret;
}

static enum err make_data_folder(char ret[static TEMPORARY_PATH_SIZE], struct error *err) {
    return temporary_folder_make("gpu-worker-bench", ret, err);
}

static void remove_data_folder(const char *folder) {
    char path[DATA_PATH_SIZE];
    for (size_t i = 0; i < sizeof data_names / sizeof data_names[0]; i++)
        unlink(data_path(folder, data_names[i], path));
    rmdir(folder);
}

/* The names of its files are relative to `folder`. */
static enum err encode(const char *yaml, const char *folder, struct slice *ret, struct error *err) {
    struct problems problems;
    uint8_t *bytes = NULL;
    size_t size = 0;
    problems_init(&problems);
    struct yaml_document *document =
        yaml_parse("bench", slice_of_text(yaml), YAML_KEEP_VARIABLES, &problems);
    enum err code = ERR_INTERNAL;
    if (document != NULL) code = job_yaml_encode(document, folder, &problems, &bytes, &size, err);
    if (problems.count > 0)
        code = error_set(err, code, 0, "make room in TMPDIR", "making a job: %s: %s",
            problems.items[0].where, problems.items[0].what);
    yaml_destroy(document);
    problems_fini(&problems);
    *ret = slice_of(bytes, size);
    return code;
}

enum err bench_job_nothing(uint32_t iterations, struct slice *ret, struct error *err) {
    char more[32] = "", yaml[256];
    if (iterations > 1) snprintf(more, sizeof more, ", iterations: %" PRIu32, iterations);
    snprintf(yaml, sizeof yaml,
        "id: bench\n"
        "buffers: {}\n"
        "steps: [{program: bench, entry: nothing, args: [{u32: 0}], grid: [1]%s}]\n"
        "outputs: []\n",
        more);
    return encode(yaml, "/", ret, err);
}

static enum err end_file(FILE *file, bool is_written, const char *path, struct error *err) {
    if (file != NULL && fclose(file) != 0) is_written = false;
    if (is_written) return ERR_OK;
    return error_set(err, ERR_IO, 0, "make room there", "%s cannot be written", path);
}

static enum err write_file(
    struct slice bytes, const char *folder, const char *name, struct error *err) {
    char path[DATA_PATH_SIZE];
    FILE *file = fopen(data_path(folder, name, path), "wxe");
    bool is_written = file != NULL && fwrite(bytes.data, bytes.size, 1, file) == 1;
    return end_file(file, is_written, path, err);
}

static enum err write_ones(
    uint64_t bytes, const char *folder, const char *name, struct error *err) {
    char path[DATA_PATH_SIZE];
    FILE *file = fopen(data_path(folder, name, path), "wxe");
    const float one = 1;
    bool is_written = file != NULL;
    for (uint64_t i = 0; i < bytes && is_written; i += sizeof one)
        is_written = fwrite(&one, sizeof one, 1, file) == 1;
    return end_file(file, is_written, path, err);
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

enum err bench_job_nothing_of_each(uint32_t instances, struct slice *ret, struct error *err) {
    char folder[TEMPORARY_PATH_SIZE], yaml[512];
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    code = write_ones((uint64_t)BENCH_PARAMETERS_BYTES * instances, folder, "x", err);
    snprintf(yaml, sizeof yaml,
        "id: bench\ncount: %" PRIu32 "\n"
        "buffers:\n"
        "  parameters: {each: true, data: {file: x}}\n"
        "  scores: {each: true, bytes: %d}\n"
        "steps: [{program: bench, entry: nothing_coalesced, args: [{u32: 0}], grid: [1]}]\n"
        "outputs: [{buffer: scores}]\n",
        instances, BENCH_SCORES_BYTES);
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

enum err bench_job_add(const char *entry, uint64_t buffer_bytes, uint32_t instances,
    struct slice *ret, struct error *err) {
    const struct array_words words = array_words_of(instances);
    char folder[TEMPORARY_PATH_SIZE], yaml[1024];
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    code = write_ones(buffer_bytes * (instances > 0 ? instances : 1), folder, "x", err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  x: {%sdata: {file: x}}\n"
        "  y: {%sdata: {file: x}}\n"
        "  z: {%sbytes: %" PRIu64 "}\n"
        "steps: [{program: bench, entry: %s, args: [x, y, z, {u32: %" PRIu64
        "}], elements: %" PRIu64 "}]\n"
        "outputs: [{buffer: z}]\n",
        words.count, words.each, words.each, words.each, buffer_bytes, entry,
        buffer_bytes / sizeof(float), buffer_bytes / sizeof(float));
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

enum err bench_job_score(uint32_t instances, struct slice *ret, struct error *err) {
    const struct array_words words = array_words_of(instances);
    float table[BENCH_TABLE_BYTES / sizeof(float)];
    char folder[TEMPORARY_PATH_SIZE], yaml[1024], name[DIGEST_TEXT_SIZE];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) table[i] = 1;
    const struct digest digest = digest_of(slice_of(table, sizeof table));
    uint64_t all = (uint64_t)BENCH_PARAMETERS_BYTES * (instances > 0 ? instances : 1);
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    code = write_ones(all, folder, "x", err);
    if (code == ERR_OK) code = write_ones(sizeof table, folder, "y", err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  parameters: {%sdata: {file: x}}\n"
        "  table: {static: '%s', data: {file: y}}\n"
        "  scores: {%sbytes: %d}\n"
        "steps: [{program: bench, entry: score, grid: [1],"
        " args: [parameters, table, scores, {u32: %zu}]}]\n"
        "outputs: [{buffer: scores}]\n",
        words.count, words.each, digest_format(&digest, name), words.each, BENCH_SCORES_BYTES,
        sizeof table / sizeof table[0]);
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

/* ---- the main job ---- */

enum { TRAIN_ROWS = 569, TRAIN_FEATURES = 30 };
_Static_assert(BENCH_TRAINED_BYTES == (TRAIN_FEATURES + 1) * sizeof(float) + 2 * sizeof(float),
    "weights, loss and accuracy");

struct data_set {
    float x[TRAIN_ROWS * TRAIN_FEATURES], y[TRAIN_ROWS];
};

/* Features between -1 and 1, the same in every process, and labels that a few of them decide. */
static void fill_data_set(struct data_set *ret) {
    uint32_t state = 1;
    for (size_t row = 0; row < TRAIN_ROWS; row++) {
        float *features = &ret->x[row * TRAIN_FEATURES];
        for (size_t i = 0; i < TRAIN_FEATURES; i++) {
            state = state * 1664525u + 1013904223u;
            features[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
        }
        ret->y[row] = features[0] + features[1] > features[2] ? 1 : 0;
    }
}

/* What stands in the job for one of them; with `file` the job carries it. */
static void describe_static(struct slice bytes, const char *file, char ret[static 256]) {
    char name[DIGEST_TEXT_SIZE];
    const struct digest digest = digest_of(bytes);
    int used =
        snprintf(ret, 256, "{static: '%s', bytes: %zu", digest_format(&digest, name), bytes.size);
    if (file != NULL) used += snprintf(ret + used, 256 - (size_t)used, ", data: {file: %s}", file);
    snprintf(ret + used, 256 - (size_t)used, "}");
}

enum err bench_job_train(uint32_t launches, uint32_t epochs, uint32_t instances, bool brings_data,
    struct slice *ret, struct error *err) {
    static struct data_set set;
    const struct array_words words = array_words_of(instances);
    char folder[TEMPORARY_PATH_SIZE], yaml[2048], x[256], y[256];
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    fill_data_set(&set);
    if (brings_data) code = write_file(slice_of(set.x, sizeof set.x), folder, "x", err);
    if (brings_data && code == ERR_OK)
        code = write_file(slice_of(set.y, sizeof set.y), folder, "y", err);
    describe_static(slice_of(set.x, sizeof set.x), brings_data ? "x" : NULL, x);
    describe_static(slice_of(set.y, sizeof set.y), brings_data ? "y" : NULL, y);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  x: %s\n"
        "  y: %s\n"
        "  weights: {%sbytes: %zu}\n"
        "  moments: {%sbytes: %zu}\n"
        "  metrics: {%sbytes: 8}\n"
        "steps:\n"
        "- {program: logreg_adam, entry: logreg_adam, grid: [1], iterations: %" PRIu32 ",\n"
        "   args: [x, y, weights, moments, {f32: 0.01}, {f32: 0.0001}, {u32: %d}, {u32: %d},\n"
        "          {u32: %" PRIu32 "}]}\n"
        "- {program: logreg_adam, entry: logreg_metrics, grid: [1],\n"
        "   args: [x, y, weights, metrics, {f32: 0.0001}, {u32: %d}, {u32: %d}]}\n"
        "outputs: [{buffer: weights}, {buffer: metrics}]\n",
        words.count, x, y, words.each, (TRAIN_FEATURES + 1) * sizeof(float), words.each,
        (2 * TRAIN_FEATURES + 4) * sizeof(float), words.each, launches, TRAIN_ROWS, TRAIN_FEATURES,
        epochs, TRAIN_ROWS, TRAIN_FEATURES);
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

enum err bench_job_share(const char *program, struct slice shared, bool brings_data,
    struct slice *ret, struct error *err) {
    char folder[TEMPORARY_PATH_SIZE], yaml[1024], x[256] = "{data: {f32: [1, 1, 1, 1]}}";
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    if (brings_data) code = write_file(shared, folder, "x", err);
    if (shared.data != NULL) describe_static(shared, brings_data ? "x" : NULL, x);
    snprintf(yaml, sizeof yaml,
        "id: bench\n"
        "buffers:\n"
        "  x: %s\n"
        "  y: {data: {f32: [1, 1, 1, 1]}}\n"
        "  z: {bytes: 16}\n"
        "steps: [{program: %s%s, args: [x, y, z, {u32: 4}], elements: 4}]\n"
        "outputs: [{buffer: z}]\n",
        x, program, strcmp(program, "bench") == 0 ? ", entry: add_coalesced" : "");
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

enum err bench_job_rounds(const uint32_t *lasts, uint32_t instances, uint32_t repeat,
    uint32_t turns, bool is_long, struct slice *ret, struct error *err) {
    const struct array_words words = array_words_of(instances);
    size_t count = instances > 0 ? instances : 1;
    char folder[TEMPORARY_PATH_SIZE], yaml[1024];
    enum err code = make_data_folder(folder, err);
    if (code != ERR_OK) return code;
    code = write_file(slice_of(lasts, count * sizeof *lasts), folder, "x", err);
    snprintf(yaml, sizeof yaml,
        "id: bench\n%s"
        "buffers:\n"
        "  numbers: {%sbytes: 512}\n"
        "  rounds: {%sbytes: 4}\n"
        "  done: {%sbytes: 4}\n"
        "  last: {%sbytes: 4, data: {file: x}}\n"
        "steps: [{program: bench, entry: draw, grid: [1], args: [numbers, rounds, done, last,"
        " {u32: 128}, {u32: %" PRIu32 "}]}]\n"
        "outputs: [{buffer: done}]\n"
        "repeat: %" PRIu32 "\n%s",
        words.count, words.each, words.each, words.each, words.each, turns, repeat,
        is_long ? "until: {buffer: done}\n" : "");
    if (code == ERR_OK) code = encode(yaml, folder, ret, err);
    remove_data_folder(folder);
    return code;
}

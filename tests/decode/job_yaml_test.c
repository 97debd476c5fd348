#include "decode/job_yaml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "decode/print.h"
#include "decoding.h"
#include "support/scratch.h"
#include "testing.h"

static struct error err;

static const struct decode_limits limits = {
    .message_bytes_max = 1 << 20,
    .arena_bytes_max = 1 << 20,
    .buffers_max = 16,
    .steps_max = 16,
    .args_max = 16,
    .outputs_max = 16,
    .writes_max = 16,
    .buffer_bytes_max = (uint64_t)1 << 40,
    .array_bytes_max = (uint64_t)1 << 40,
    .launches_max = 1000,
    .instances_max = 100,
    .timeout_ms_max = UINT32_MAX,
};

/* A message of the text; NULL, and `problems` filled, where it cannot be made. */
static uint8_t *encode(
    const char *text, const char *folder, size_t *size, struct problems *problems) {
    uint8_t *bytes = NULL;
    problems_init(problems);
    struct yaml_document *document =
        yaml_parse("job.yaml", slice_of_text(text), YAML_KEEP_VARIABLES, problems);
    if (document != NULL) (void)!job_yaml_encode(document, folder, problems, &bytes, size, &err);
    yaml_destroy(document);
    return bytes;
}

static struct job *decode(const char *text) {
    struct problems problems;
    size_t size = 0;
    struct job *job = NULL;
    uint8_t *bytes = encode(text, ".", &size, &problems);
    if (bytes == NULL) problems_print(&problems, "test");
    assert_non_null(bytes);
    if (decode_bytes(slice_of(bytes, size), &limits, &job, &err) != ERR_OK)
        fail_msg("%s", err.message);
    free(bytes);
    problems_fini(&problems);
    return job;
}

static void assert_problem(const char *text, const char *where, const char *what) {
    struct problems problems;
    size_t size = 0;
    uint8_t *bytes = encode(text, ".", &size, &problems);
    assert_null(bytes);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.items[0].where, where);
    assert_non_null(strstr(problems.items[0].what, what));
    problems_fini(&problems);
}

/* A job whose one buffer has this data; the data stands at line 2, column 21. */
#define JOB_OF_DATA(data)                                                                          \
    "id: j\n"                                                                                      \
    "buffers: {x: {data: " data "}}\n"                                                             \
    "steps: [{program: p, args: [x], grid: [1]}]\n"                                                \
    "outputs: [{buffer: x}]\n"

TEST(version_and_bytes_are_filled_in) {
    struct job *job = decode(JOB_OF_DATA("{f32: [1, 2.5]}"));
    assert_true(slice_is_text(job->id, "j"));
    assert_int_equal(job->buffers[0].bytes, 8);
    job_destroy(job);
}

TEST(bytes_that_are_given_are_kept) {
    struct job *job =
        decode("v: 1\n"
               "id: j\n"
               "buffers: {x: {bytes: 1024}, y: {resident: w, init: {data: {u8: [1]}}}}\n"
               "steps: [{program: p, args: [{words: [1, 2]}], elements: 10}]\n"
               "outputs: []\n");
    assert_int_equal(job->buffers[0].bytes, 1024);
    assert_int_equal(job->buffers[1].bytes, 1);
    assert_int_equal(job->steps[0].args[0].words[1], 2);
    job_destroy(job);
}

TEST(each_form_of_data_becomes_little_endian_bytes) {
    static const struct {
        const char *text;
        struct slice bytes;
    } cases[] = {
        {JOB_OF_DATA("{f32: [1, -2.5]}"), {(const uint8_t *)"\0\0\x80\x3f\0\0\x20\xc0", 8}},
        {JOB_OF_DATA("{f64: [1e0]}"), {(const uint8_t *)"\0\0\0\0\0\0\xf0\x3f", 8}},
        {JOB_OF_DATA("{i32: [-2]}"), {(const uint8_t *)"\xfe\xff\xff\xff", 4}},
        {JOB_OF_DATA("{u32: [0xff, 0o17]}"), {(const uint8_t *)"\xff\0\0\0\x0f\0\0\0", 8}},
        {JOB_OF_DATA("{u8: [0, 255]}"), {(const uint8_t *)"\0\xff", 2}},
        {JOB_OF_DATA("{i64: [-9223372036854775808]}"), {(const uint8_t *)"\0\0\0\0\0\0\0\x80", 8}},
        {JOB_OF_DATA("{u64: [18446744073709551615]}"),
            {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8}},
        {JOB_OF_DATA("{hex: 00fF}"), {(const uint8_t *)"\0\xff", 2}},
        {JOB_OF_DATA("{hex: \"12\"}"), {(const uint8_t *)"\x12", 1}},
        {JOB_OF_DATA("{f32: []}"), {(const uint8_t *)"", 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = decode(cases[i].text);
        assert_true(slice_equal(job->buffers[0].data, cases[i].bytes));
        assert_int_equal(job->buffers[0].bytes, cases[i].bytes.size);
        job_destroy(job);
    }
}

TEST(data_may_stand_in_a_file_beside_the_job) {
    char *folder = scratch_create(), *path = scratch_file(folder, "four", 4), *text;
    assert_return_code(asprintf(&text, JOB_OF_DATA("{file: %s}"), strrchr(path, '/') + 1), 0);

    struct problems problems;
    struct job *job = NULL;
    size_t size = 0;
    uint8_t *bytes = encode(text, folder, &size, &problems);
    assert_non_null(bytes);
    assert_int_equal(decode_bytes(slice_of(bytes, size), &limits, &job, &err), ERR_OK);
    assert_true(slice_is_text(job->buffers[0].data, "four"));
    job_destroy(job);
    free(bytes);
    problems_fini(&problems);
    free(text);
    free(path);
    scratch_remove(folder);
}

TEST(scalars_keep_the_type_that_yaml_gives_them) {
    struct job *job =
        decode("id: 2024\n"
               "buffers: {\"true\": {bytes: 4, fill: 0x10}}\n"
               "steps:\n"
               "  - program: p\n"
               "    args: [\"true\", {i32: -1}, {f32: .inf}, {f64: -1.5e3}, {f32: 2}]\n"
               "    cooperative: true\n"
               "    grid: [1]\n"
               "outputs: []\n");
    double number;
    memcpy(&number, &job->steps[0].args[3].bits, sizeof number);
    assert_true(slice_is_text(job->id, "2024"));
    assert_int_equal(job->buffers[0].fill, 16);
    assert_int_equal(job->steps[0].args[1].bits, UINT32_MAX);
    assert_int_equal(job->steps[0].args[2].bits, 0x7f800000);
    assert_true(number == -1500);
    assert_true(job->steps[0].cooperative);
    job_destroy(job);
}

TEST(problems_say_where_they_stand) {
    assert_problem(JOB_OF_DATA("[1, 2]"), "job.yaml:2:21", "data must be a map");
    assert_problem(JOB_OF_DATA("{f16: [1]}"), "job.yaml:2:21", "data must be a map");
    assert_problem(JOB_OF_DATA("{u8: 1}"), "job.yaml:2:26", "u8 must be a list");
    assert_problem(JOB_OF_DATA("{u8: [1, 256]}"), "job.yaml:2:30", "256 is no u8");
    assert_problem(JOB_OF_DATA("{u8: [-1]}"), "job.yaml:2:27", "-1 is no u8");
    assert_problem(JOB_OF_DATA("{i32: [2147483648]}"), "job.yaml:2:28", "is no i32");
    assert_problem(JOB_OF_DATA("{i32: [1.5]}"), "job.yaml:2:28", "1.5 is no i32");
    assert_problem(JOB_OF_DATA("{f32: [1e300]}"), "job.yaml:2:28", "1e300 is no f32");
    assert_problem(JOB_OF_DATA("{f64: [1e309]}"), "job.yaml:2:28", "1e309 is no f64");
    assert_problem(JOB_OF_DATA("{f32: [[1]]}"), "job.yaml:2:28", "this is no f32");
    assert_problem(JOB_OF_DATA("{f32: [\"1\"]}"), "job.yaml:2:28", "1 is no f32");
    assert_problem(JOB_OF_DATA("{hex: \"0\"}"), "job.yaml:2:27", "hex");
    assert_problem(JOB_OF_DATA("{hex: \"zz\"}"), "job.yaml:2:27", "hex");
    assert_problem(JOB_OF_DATA("{file: no-such.bin}"), "job.yaml:2:28", "no-such.bin");
    assert_problem(JOB_OF_DATA("{file: ''}"), "job.yaml:2:28", "no file is named");
    assert_problem("repeat: 18446744073709551616\n", "job.yaml:1:9", "64 bits");
    assert_problem("repeat: -1e309\n", "job.yaml:1:9", "64 bits");
}

static bool is_cut(const char *text) {
    return strstr(text, "...") != NULL;
}

/* What `tail` shows of a job can be given to `submit` again. */
static void assert_survives_print(const char *path) {
    char *message = NULL, *text = NULL;
    size_t message_size, text_size, again_size = 0;
    struct problems problems;
    struct job *job = NULL;
    if (file_read(path, 1 << 20, &message, &message_size, &err) != ERR_OK)
        fail_msg("%s", err.message);
    FILE *out = open_memstream(&text, &text_size);
    assert_non_null(out);
    print_message_payload(slice_of(message, message_size), out);
    fclose(out);
    assert_false(is_cut(text));
    uint8_t *again = encode(text, ".", &again_size, &problems);
    assert_non_null(again);
    if (decode_bytes(slice_of(again, again_size), &golden_limits, &job, &err) != ERR_OK)
        fail_msg("%s: %s\n%s", path, err.message, text);
    job_destroy(job);
    problems_fini(&problems);
    free(again);
    free(text);
    free(message);
}

TEST(every_valid_job_survives_being_printed) {
    DIR *folder = opendir(GOLDEN_VALID);
    assert_non_null(folder);
    int vectors = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[4096];
        if (strstr(entry->d_name, ".msgpack") == NULL) continue;
        snprintf(path, sizeof path, "%s/%s", GOLDEN_VALID, entry->d_name);
        assert_survives_print(path);
        vectors++;
    }
    closedir(folder);
    assert_true(vectors > 0);
}

RUN_TESTS(T(version_and_bytes_are_filled_in), T(bytes_that_are_given_are_kept),
    T(each_form_of_data_becomes_little_endian_bytes), T(data_may_stand_in_a_file_beside_the_job),
    T(scalars_keep_the_type_that_yaml_gives_them), T(problems_say_where_they_stand),
    T(every_valid_job_survives_being_printed))

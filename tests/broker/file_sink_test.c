#include "broker/file_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

/* A record that remembers how it was settled. */
struct sent {
    struct record record; /* first: on_settled gets its address */
    int settled_count;
    enum err code;
    struct error err;
};

static void remember(struct record *record, enum err code, const struct error *err) {
    struct sent *sent = (struct sent *)record;
    sent->settled_count++;
    sent->code = code;
    if (err != NULL) sent->err = *err;
}

static struct sent result_of(const char *text) {
    return (struct sent){
        .record = {.route = ROUTE_RESULT, .payload = slice_of_text(text), .on_settled = remember}};
}

static void expect_settled(const struct sent *sent, enum err code) {
    assert_int_equal(sent->settled_count, 1);
    assert_int_equal(sent->code, code);
}

static char *folder;

static int set_up(void **state) {
    folder = scratch_create();
    return 0;
}

static int tear_down(void **state) {
    scratch_remove(folder);
    return 0;
}

static char *new_path(void) {
    return scratch_file(folder, "", 0);
}

/* The file's bytes, which must be `text`; the file is removed, the path freed. */
static void expect_file(char *path, const char *text) {
    char bytes[4096] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    assert_string_equal(bytes, text);
    assert_int_equal(size, strlen(text));
    unlink(path);
    free(path);
}

static struct sink *open_sink(const char *results, const char *dead_letters) {
    struct sink *sink = NULL;
    struct error err;
    assert_int_equal(file_sink_create(results, dead_letters, NULL, &sink, &err), ERR_OK);
    return sink;
}

static void flush(struct sink *sink) {
    struct error err;
    assert_int_equal(sink_flush(sink, -1, &err), ERR_OK);
}

TEST(results_follow_one_another_and_replace_the_file) {
    char *path = new_path();
    FILE *old = fopen(path, "w");
    fputs("something longer than the results", old);
    fclose(old);
    struct sink *sink = open_sink(path, NULL);
    struct sent one = result_of("one"), two = result_of(""), three = result_of("three");
    sink_send(sink, &one.record);
    sink_send(sink, &two.record);
    sink_send(sink, &three.record);
    flush(sink);
    expect_settled(&one, ERR_OK);
    expect_settled(&two, ERR_OK);
    expect_settled(&three, ERR_OK);
    sink_destroy(sink);
    expect_file(path, "onethree");
}

TEST(serving_writes_what_was_sent) {
    char *path = new_path();
    struct sink *sink = open_sink(path, NULL);
    struct sent one = result_of("one");
    sink_send(sink, &one.record);
    sink_serve(sink, 0);
    expect_settled(&one, ERR_OK);
    sink_destroy(sink);
    expect_file(path, "one");
}

TEST(many_records_are_written_in_order_without_a_flush) {
    enum { COUNT = 1000 };
    static struct sent sent[COUNT];
    static char texts[COUNT][8];
    char *path = new_path();
    struct sink *sink = open_sink(path, NULL);
    size_t settled = 0;
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "%03zu", i);
        sent[i] = result_of(texts[i]);
        sink_send(sink, &sent[i].record);
    }
    for (size_t i = 0; i < COUNT; i++) settled += (size_t)sent[i].settled_count;
    assert_true(settled > 0);
    flush(sink);
    sink_destroy(sink);
    char expected[COUNT * 3 + 1] = "";
    for (size_t i = 0; i < COUNT; i++) memcpy(expected + 3 * i, texts[i], 3);
    expect_file(path, expected);
}

TEST(a_dead_letter_is_a_line_of_json_that_loses_nothing) {
    char *results = new_path(), *dead = new_path();
    struct sink *sink = open_sink(results, dead);
    struct header headers[] = {{slice_of_text("dlq.error.code"), slice_of_text("bad_message")},
        {slice_of_text("quo\"te\\\n"), slice_of("\xff\x00", 2)}};
    struct sent broken = {.record = {.route = ROUTE_DEAD_LETTER,
                              .payload = slice_of("\xc1\x00\x7f", 3),
                              .header_count = 2,
                              .headers = headers,
                              .on_settled = remember}};
    struct sent text = {.record = {.route = ROUTE_DEAD_LETTER,
                            .payload = slice_of_text("{\"id\": 7}"),
                            .has_key = true,
                            .key = slice_of_text("k\xc3\xbc"),
                            .on_settled = remember}};
    sink_send(sink, &broken.record);
    sink_send(sink, &text.record);
    flush(sink);
    expect_settled(&broken, ERR_OK);
    expect_settled(&text, ERR_OK);
    sink_destroy(sink);
    expect_file(results, "");
    expect_file(dead,
        "{\"headers\": [[\"dlq.error.code\", \"bad_message\"], "
        "[\"quo\\\"te\\\\\\u000a\", {\"hex\": \"ff00\"}]], "
        "\"key\": null, \"payload\": {\"hex\": \"c1007f\"}}\n"
        "{\"headers\": [], \"key\": \"k\xc3\xbc\", \"payload\": \"{\\\"id\\\": 7}\"}\n");
}

TEST(dead_letters_without_a_file_are_settled) {
    char *path = new_path();
    struct sink *sink = open_sink(path, NULL);
    struct sent dead = result_of("dead");
    dead.record.route = ROUTE_DEAD_LETTER;
    sink_send(sink, &dead.record);
    expect_settled(&dead, ERR_OK);
    sink_destroy(sink);
    expect_file(path, "");
}

/* Lets files grow to `bytes` only, as a full disk would. */
static struct rlimit limit_files(rlim_t bytes) {
    struct rlimit before, limited;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limited = (struct rlimit){.rlim_cur = bytes, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
    return before;
}

TEST(a_full_disk_leaves_whole_records_and_says_which_are_lost) {
    char *path = new_path();
    struct sink *sink = open_sink(path, NULL);
    struct sent one = result_of("one"), two = result_of("two"), three = result_of("three");
    sink_send(sink, &one.record);
    sink_send(sink, &two.record);
    sink_send(sink, &three.record);
    struct rlimit before = limit_files(8);
    flush(sink);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_settled(&one, ERR_OK);
    expect_settled(&two, ERR_OK);
    expect_settled(&three, ERR_IO);
    assert_non_null(strstr(three.err.message, path));
    assert_true(three.err.fix[0] != 0);

    struct sent later = result_of("later");
    sink_send(sink, &later.record);
    expect_settled(&later, ERR_IO);
    sink_destroy(sink);
    expect_file(path, "onetwo");
}

TEST(a_device_without_room_fails_every_record) {
    struct sink *sink = open_sink("/dev/full", NULL);
    struct sent one = result_of("one");
    sink_send(sink, &one.record);
    flush(sink);
    expect_settled(&one, ERR_IO);
    assert_non_null(strstr(one.err.message, "/dev/full"));
    sink_destroy(sink);
}

static struct sink *chained_sink;
static struct sent chained;

static void send_another(struct record *record, enum err code, const struct error *err) {
    remember(record, code, err);
    sink_send(chained_sink, &chained.record);
}

TEST(settling_a_record_may_send_another) {
    char *path = new_path();
    chained_sink = open_sink(path, NULL);
    chained = result_of("two");
    struct sent one = result_of("one");
    one.record.on_settled = send_another;
    sink_send(chained_sink, &one.record);
    flush(chained_sink);
    expect_settled(&one, ERR_OK);
    expect_settled(&chained, ERR_OK);
    sink_destroy(chained_sink);
    expect_file(path, "onetwo");
}

TEST(what_was_not_written_is_settled_when_the_sink_goes) {
    char *results = new_path(), *dead = new_path();
    struct sink *sink = open_sink(results, dead);
    struct sent one = result_of("one"), two = result_of("two");
    two.record.route = ROUTE_DEAD_LETTER;
    sink_send(sink, &one.record);
    sink_send(sink, &two.record);
    sink_destroy(sink);
    expect_settled(&one, ERR_BROKER);
    expect_settled(&two, ERR_BROKER);
    expect_file(results, "");
    expect_file(dead, "");
}

/* A record that answers `size` bytes. */
static bool takes_at_once(struct sink *sink, enum route route, size_t size) {
    static const uint8_t bytes[PIPE_BUF + 1];
    const struct record record = {.route = route, .payload = slice_of(bytes, size)};
    return sink_takes_at_once(sink, &record);
}

TEST(a_pipe_takes_small_results_at_once_as_long_as_it_has_room) {
    char *path = new_path();
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    struct sink *sink = open_sink(path, NULL);
    assert_true(takes_at_once(sink, ROUTE_RESULT, PIPE_BUF));
    assert_false(takes_at_once(sink, ROUTE_RESULT, PIPE_BUF + 1));
    assert_false(takes_at_once(sink, ROUTE_DEAD_LETTER, 1));
    int writer = open(path, O_WRONLY | O_NONBLOCK);
    char page[PIPE_BUF] = {0};
    while (write(writer, page, sizeof page) > 0) continue;
    assert_false(takes_at_once(sink, ROUTE_RESULT, 1));
    assert_int_equal(read(reader, page, sizeof page), sizeof page);
    assert_true(takes_at_once(sink, ROUTE_RESULT, PIPE_BUF));
    close(reader);
    assert_false(takes_at_once(sink, ROUTE_RESULT, 1)); /* sending it says what is wrong */
    sink_destroy(sink);
    close(writer);
    unlink(path);
    free(path);
}

TEST(a_file_takes_nothing_at_once_because_a_disk_may_be_slow) {
    char *path = new_path();
    struct sink *sink = open_sink(path, NULL);
    assert_false(takes_at_once(sink, ROUTE_RESULT, 1));
    sink_destroy(sink);
    expect_file(path, "");
}

TEST(a_file_that_cannot_be_opened_is_an_error_that_names_it) {
    struct sink *sink = NULL;
    struct error err;
    char *path = new_path();
    assert_int_equal(file_sink_create("/dev/null/results", NULL, NULL, &sink, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/dev/null/results"));
    assert_int_equal(file_sink_create(path, "/dev/null/dead", NULL, &sink, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/dev/null/dead"));
    expect_file(path, "");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(results_follow_one_another_and_replace_the_file),
        T(serving_writes_what_was_sent), T(many_records_are_written_in_order_without_a_flush),
        T(a_dead_letter_is_a_line_of_json_that_loses_nothing),
        T(dead_letters_without_a_file_are_settled),
        T(a_full_disk_leaves_whole_records_and_says_which_are_lost),
        T(a_device_without_room_fails_every_record), T(settling_a_record_may_send_another),
        T(what_was_not_written_is_settled_when_the_sink_goes),
        T(a_pipe_takes_small_results_at_once_as_long_as_it_has_room),
        T(a_file_takes_nothing_at_once_because_a_disk_may_be_slow),
        T(a_file_that_cannot_be_opened_is_an_error_that_names_it)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

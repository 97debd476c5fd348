#include "broker/file_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

/* msgpack by hand: 0x93 is an array of three, 0xc5 a bin with a two-byte length. */
#define SMALL "\x93\x01\x02\x03"
#define TEXT "\xa5hello"

static char *folder;

static int set_up(void **state) {
    folder = scratch_create();
    return 0;
}

static int tear_down(void **state) {
    scratch_remove(folder);
    return 0;
}

static struct source *open_source(const char *path, size_t message_bytes_max) {
    struct source *source = NULL;
    struct error err;
    assert_int_equal(file_source_create(path, message_bytes_max, NULL, &source, &err), ERR_OK);
    return source;
}

static struct source *source_of(const void *bytes, size_t size, size_t message_bytes_max) {
    char *path = scratch_file(folder, bytes, size);
    struct source *source = open_source(path, message_bytes_max);
    unlink(path);
    free(path);
    return source;
}

/* The next message, which must come with one of so many polls, and be `size` bytes of `bytes`. */
static void expect_within(
    struct source *source, int polls, int64_t offset, const void *bytes, size_t size) {
    struct delivery *delivery = NULL;
    struct error err = {.message = ""};
    bool at_end = false;
    for (int i = 0; i < polls && delivery == NULL && !at_end; i++)
        if (source_poll(source, 5000, &delivery, &at_end, &err) != ERR_OK)
            fail_msg("%s", err.message);
    assert_non_null(delivery);
    assert_int_equal(delivery->position.offset, offset);
    assert_int_equal(delivery->position.partition, 0);
    assert_int_equal(delivery->payload.size, size);
    assert_memory_equal(delivery->payload.data, bytes, size);
    assert_false(at_end);
    source_finish(source, &delivery->position);
    delivery_destroy(delivery);
}

static void expect(struct source *source, int64_t offset, const void *bytes, size_t size) {
    expect_within(source, 1, offset, bytes, size);
}

/* The source is at its end; closing it returns why, or ERR_OK where nothing is left. */
static enum err reach_end(struct source *source, struct error *err) {
    struct delivery *delivery = NULL;
    bool at_end = false;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(source_poll(source, 0, &delivery, &at_end, err), ERR_OK);
        assert_null(delivery);
        assert_true(at_end);
    }
    return source_close(source, 0, err);
}

static void expect_end(struct source *source) {
    struct error err;
    assert_int_equal(reach_end(source, &err), ERR_OK);
    source_destroy(source);
}

static void expect_failure(struct source *source, enum err code, const char *part) {
    struct error err;
    assert_int_equal(reach_end(source, &err), code);
    if (strstr(err.message, part) == NULL) fail_msg("no \"%s\" in: %s", part, err.message);
    assert_true(err.fix[0] != 0);
    source_destroy(source);
}

TEST(messages_come_one_by_one_with_their_index) {
    struct source *source = source_of(SMALL TEXT SMALL, 14, 100);
    expect(source, 0, SMALL, 4);
    expect(source, 1, TEXT, 6);
    expect(source, 2, SMALL, 4);
    expect_end(source);
}

TEST(an_empty_file_is_at_its_end) {
    expect_end(source_of("", 0, 100));
}

TEST(a_position_names_the_file) {
    char *path = scratch_file(folder, SMALL, 4);
    struct source *source = open_source(path, 100);
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end;
    assert_int_equal(source_poll(source, 0, &delivery, &at_end, &err), ERR_OK);
    assert_string_equal(delivery->position.topic, path);
    delivery_destroy(delivery);
    source_destroy(source);
    unlink(path);
    free(path);
}

TEST(a_buffer_as_small_as_the_largest_message_is_enough) {
    struct source *source = source_of(TEXT SMALL TEXT SMALL TEXT, 26, 6);
    expect(source, 0, TEXT, 6);
    expect(source, 1, SMALL, 4);
    expect(source, 2, TEXT, 6);
    expect(source, 3, SMALL, 4);
    expect(source, 4, TEXT, 6);
    expect_end(source);
}

TEST(a_message_over_the_limit_comes_as_a_broken_last_one) {
    struct source *source = source_of(SMALL TEXT SMALL, 14, 5);
    expect(source, 0, SMALL, 4);
    expect(source, 1, TEXT, 5);
    expect_failure(source, ERR_BAD_MESSAGE, "message 1, which begins at byte 4, is too large");
}

TEST(bytes_that_are_not_msgpack_come_as_a_broken_last_message) {
    struct source *source = source_of(SMALL "\xc1 rest" SMALL, 14, 100);
    expect(source, 0, SMALL, 4);
    expect(source, 1, "\xc1 rest" SMALL, 10);
    expect_failure(source, ERR_BAD_MESSAGE, "byte 4");
}

TEST(a_stream_that_ends_inside_a_message_comes_as_a_broken_last_one) {
    struct source *source = source_of(SMALL "\xa5hel", 8, 100);
    expect(source, 0, SMALL, 4);
    expect(source, 1, "\xa5hel", 4);
    expect_failure(source, ERR_BAD_MESSAGE, "ends early");
}

TEST(a_header_that_claims_gigabytes_costs_only_the_buffer) {
    struct source *source = source_of("\xc6\xff\xff\xff\xff" SMALL, 9, 8);
    expect(source, 0, "\xc6\xff\xff\xff\xff" SMALL, 8);
    expect_failure(source, ERR_BAD_MESSAGE, "too large");
}

/* 4 MiB: several reads, messages across their borders */
enum { LARGE_BYTES = 3 + 60000, LARGE_COUNT = 70 };
static uint8_t large[LARGE_COUNT * LARGE_BYTES];

static struct source *source_of_large_messages(void) {
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        memcpy(large + i * LARGE_BYTES, "\xc5\xea\x60", 3);
        memset(large + i * LARGE_BYTES + 3, (int)i, LARGE_BYTES - 3);
    }
    return source_of(large, sizeof large, 100000);
}

TEST(messages_larger_than_a_read_are_put_together) {
    struct source *source = source_of_large_messages();
    for (size_t i = 0; i < LARGE_COUNT; i++)
        expect(source, (int64_t)i, large + i * LARGE_BYTES, LARGE_BYTES);
    expect_end(source);
}

TEST(what_is_lent_stays_while_more_is_read) {
    struct delivery *lent[LARGE_COUNT] = {0};
    struct error err;
    bool at_end;
    struct source *source = source_of_large_messages();
    for (size_t i = 0; i < LARGE_COUNT; i++)
        while (lent[i] == NULL)
            assert_int_equal(source_poll(source, 0, &lent[i], &at_end, &err), ERR_OK);
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        assert_null(lent[i]->kept);
        assert_int_equal(lent[i]->payload.size, LARGE_BYTES);
        assert_memory_equal(lent[i]->payload.data, large + i * LARGE_BYTES, LARGE_BYTES);
        delivery_destroy(lent[i]);
    }
    expect_end(source);
}

TEST(a_paused_source_brings_nothing) {
    struct source *source = source_of(SMALL, 4, 100);
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end = true;
    source_pause(source, true);
    assert_int_equal(source_poll(source, 0, &delivery, &at_end, &err), ERR_OK);
    assert_null(delivery);
    assert_false(at_end);
    source_pause(source, false);
    expect(source, 0, SMALL, 4);
    expect_end(source);
}

/* A pipe as standard input; returns the end to write to. */
static int open_stdin_pipe(int *saved) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *saved = dup(STDIN_FILENO);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    return ends[1];
}

TEST(standard_input_brings_each_message_as_soon_as_it_is_whole) {
    int saved, in = open_stdin_pipe(&saved);
    struct source *source = open_source("-", 100);
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end = true;

    assert_int_equal(write(in, "\xa5hel", 4), 4);
    assert_int_equal(source_poll(source, 0, &delivery, &at_end, &err), ERR_OK);
    assert_null(delivery);
    assert_false(at_end);
    assert_int_equal(write(in, "lo\x93", 3), 3);
    expect(source, 0, TEXT, 6);
    assert_int_equal(write(in, "\x01\x02\x03" SMALL, 7), 7);
    expect(source, 1, SMALL, 4);
    expect(source, 2, SMALL, 4);
    close(in);
    assert_int_equal(source_poll(source, 5000, &delivery, &at_end, &err), ERR_OK);
    assert_true(at_end);
    expect_end(source);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

TEST(a_file_that_cannot_be_opened_or_read_is_an_error_that_names_it) {
    struct source *source = NULL;
    struct error err;
    assert_int_equal(file_source_create("/dev/null/jobs", 100, NULL, &source, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/dev/null/jobs"));
    char expected[256];
    snprintf(expected, sizeof expected, "reading %s at byte 0", folder);
    expect_failure(open_source(folder, 100), ERR_IO, expected);
}

/* How many bytes of the file this process has read; it has it open once. */
static size_t bytes_read_of(const char *path) {
    char link[64], found[4096], line[64] = "";
    for (int fd = 3; fd < 64; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, found, sizeof found - 1);
        if (size < 0) continue;
        found[size] = 0;
        if (strcmp(found, path) != 0) continue;
        snprintf(link, sizeof link, "/proc/self/fdinfo/%d", fd);
        FILE *file = fopen(link, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
    }
    assert_memory_equal(line, "pos:", 4);
    return (size_t)strtoull(line + 4, NULL, 10);
}

TEST(a_large_message_stays_where_it_was_read_with_little_else) {
    enum { BYTES = 9 << 20, MORE_BYTES = 7 << 20 };
    uint8_t *bytes = calloc(1, BYTES + MORE_BYTES);
    assert_non_null(bytes);
    const uint8_t head[] = {
        0xc6, 0, (BYTES - 5) >> 16, (BYTES - 5) >> 8 & 0xff, (BYTES - 5) & 0xff};
    memcpy(bytes, head, sizeof head);
    char *path = scratch_file(folder, bytes, BYTES + MORE_BYTES);
    struct source *source = open_source(path, 64 << 20);
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end;
    for (int i = 0; i < 64 && delivery == NULL; i++)
        assert_int_equal(source_poll(source, 5000, &delivery, &at_end, &err), ERR_OK);
    assert_non_null(delivery);
    assert_int_equal(delivery->payload.size, BYTES);
    assert_true(delivery->loan.holds_bytes >= bytes_read_of(path));
    assert_true(delivery_may_stay(delivery));
    delivery_destroy(delivery);
    source_destroy(source);
    free(path);
    free(bytes);
}

/* Of 9 MiB, most of which several threads read, between small ones. */
enum { HUGE_BYTES = 9 << 20, HUGE_FILE_BYTES = 4 + 2 * (HUGE_BYTES + 6) };

static uint8_t *huge_messages(void) {
    const uint8_t head[] = {
        0xc6, 0, (HUGE_BYTES - 5) >> 16, (HUGE_BYTES - 5) >> 8 & 0xff, (HUGE_BYTES - 5) & 0xff};
    uint8_t *bytes = malloc(HUGE_FILE_BYTES), *at = bytes + 4;
    assert_non_null(bytes);
    memcpy(bytes, SMALL, 4);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < HUGE_BYTES; k++) at[k] = (uint8_t)((k + i) * 2654435761u >> 13);
        memcpy(at, head, sizeof head);
        memcpy(at + HUGE_BYTES, TEXT, 6);
        at += HUGE_BYTES + 6;
    }
    return bytes;
}

/* Each comes in parts. */
static void expect_huge_messages(struct source *source, const uint8_t *bytes) {
    for (int64_t i = 0; i < 2; i++) {
        expect_within(source, 1000, 2 * i, bytes, HUGE_BYTES);
        expect_within(source, 1000, 2 * i + 1, bytes + HUGE_BYTES, 6);
        bytes += HUGE_BYTES + 6;
    }
}

TEST(what_several_threads_read_of_a_file_is_put_together) {
    uint8_t *bytes = huge_messages();
    struct source *source = source_of(bytes + 4, HUGE_FILE_BYTES - 4, HUGE_BYTES);
    expect_huge_messages(source, bytes + 4);
    expect_end(source);
    free(bytes);
}

TEST(a_file_as_standard_input_is_read_from_where_it_stands) {
    uint8_t *bytes = huge_messages();
    char *path = scratch_file(folder, bytes, HUGE_FILE_BYTES);
    int saved = dup(STDIN_FILENO), fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
    struct source *source = open_source("-", HUGE_BYTES);
    expect_huge_messages(source, bytes + 4);
    expect_end(source);
    dup2(saved, STDIN_FILENO);
    close(saved);
    unlink(path);
    free(path);
    free(bytes);
}

/* Never as much at once as is missing. */
TEST(a_pipe_brings_a_message_of_many_reads) {
    uint8_t *bytes = huge_messages();
    int saved, in = open_stdin_pipe(&saved);
    pid_t writer = fork();
    if (writer == 0) {
        close(STDIN_FILENO); /* else it would wait for itself */
        for (size_t at = 4; at < HUGE_FILE_BYTES;) {
            ssize_t count = write(in, bytes + at, HUGE_FILE_BYTES - at);
            if (count <= 0) _exit(1);
            at += (size_t)count;
        }
        _exit(0);
    }
    close(in);
    struct source *source = open_source("-", HUGE_BYTES);
    expect_huge_messages(source, bytes + 4);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    expect_end(source);
    dup2(saved, STDIN_FILENO);
    close(saved);
    free(bytes);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(messages_come_one_by_one_with_their_index),
        T(an_empty_file_is_at_its_end), T(a_position_names_the_file),
        T(a_buffer_as_small_as_the_largest_message_is_enough),
        T(a_message_over_the_limit_comes_as_a_broken_last_one),
        T(bytes_that_are_not_msgpack_come_as_a_broken_last_message),
        T(a_stream_that_ends_inside_a_message_comes_as_a_broken_last_one),
        T(a_header_that_claims_gigabytes_costs_only_the_buffer),
        T(messages_larger_than_a_read_are_put_together), T(what_is_lent_stays_while_more_is_read),
        T(a_large_message_stays_where_it_was_read_with_little_else),
        T(what_several_threads_read_of_a_file_is_put_together),
        T(a_file_as_standard_input_is_read_from_where_it_stands),
        T(a_pipe_brings_a_message_of_many_reads), T(a_paused_source_brings_nothing),
        T(standard_input_brings_each_message_as_soon_as_it_is_whole),
        T(a_file_that_cannot_be_opened_or_read_is_an_error_that_names_it)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

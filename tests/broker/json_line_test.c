#include "broker/json_line.h"

#include <stdio.h>
#include <stdlib.h>

#include "testing.h"

#define BYTES(literal) slice_of("" literal, sizeof literal - 1)

static struct header headers[DELIVERY_HEADERS_MAX];
static struct delivery letter;
static struct error err;

/* A copy on the heap of just its size, so that a sanitizer sees what is read past its end. */
static enum err read_copy(struct slice line, uint8_t **copy) {
    *copy = malloc(line.size > 0 ? line.size : 1);
    assert_non_null(*copy);
    if (line.size > 0) memcpy(*copy, line.data, line.size);
    return json_line_read(*copy, line.size, headers, &letter, &err);
}

static void assert_refused(struct slice line) {
    uint8_t *copy;
    assert_int_equal(read_copy(line, &copy), ERR_BAD_MESSAGE);
    free(copy);
}

static const struct header sent[] = {{{.data = (const uint8_t *)"name", .size = 4},
                                         {.data = (const uint8_t *)"a\"\\\n\x7f\x01", .size = 6}},
    {{.data = (const uint8_t *)"\xff", .size = 1}, {.data = (const uint8_t *)"", .size = 0}}};

static struct slice written(bool has_key) {
    const struct record record = {.header_count = 2,
        .headers = sent,
        .has_key = has_key,
        .key = BYTES("\xc5\x82"),
        .payload = BYTES("\x81\x00\xff")};
    struct slice line = json_line_of(&record);
    assert_non_null(line.data);
    return line;
}

TEST(what_was_written_is_read_again) {
    for (int has_key = 0; has_key < 2; has_key++) {
        struct slice line = written(has_key != 0);
        uint8_t *copy;
        assert_int_equal(read_copy(line, &copy), ERR_OK);
        assert_int_equal(letter.header_count, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_true(slice_equal(letter.headers[i].name, sent[i].name));
            assert_true(slice_equal(letter.headers[i].value, sent[i].value));
        }
        assert_int_equal(letter.has_key, has_key);
        if (has_key) assert_true(slice_equal(letter.key, BYTES("\xc5\x82")));
        assert_true(slice_equal(letter.payload, BYTES("\x81\x00\xff")));
        free(copy);
        free((void *)(uintptr_t)line.data);
    }
}

TEST(escapes_of_other_writers_are_read) {
    uint8_t *copy;
    assert_int_equal(read_copy(BYTES(" {\"headers\":[] , \"key\":\"\\u0041\\u0142\\u20ac\\/\\t\","
                                     "\"payload\":{ \"hex\" : \"00fF\" }}\r\n"),
                         &copy),
        ERR_OK);
    assert_true(slice_equal(letter.key, BYTES("A\xc5\x82\xe2\x82\xac/\t")));
    assert_true(slice_equal(letter.payload, BYTES("\x00\xff")));
    free(copy);
}

TEST(a_cut_line_is_refused_wherever_it_is_cut) {
    struct slice line = written(true);
    for (size_t size = 0; size + 1 < line.size; size++) assert_refused(slice_of(line.data, size));
    free((void *)(uintptr_t)line.data);
}

TEST(anything_else_is_refused) {
    assert_refused(BYTES("{}"));
    assert_refused(BYTES("{\"headers\": [], \"key\": null, \"payload\": null}"));
    assert_refused(BYTES("{\"headers\": [], \"key\": null, \"payload\": \"\"} more"));
    assert_refused(BYTES("{\"headers\": [], \"key\": null, \"payload\": \"\\ud800\"}"));
    assert_refused(BYTES("{\"headers\": [], \"key\": null, \"payload\": \"\\x\"}"));
    assert_refused(BYTES("{\"headers\": [], \"key\": null, \"payload\": {\"hex\": \"0\"}}"));
    assert_refused(BYTES("{\"headers\": [[\"a\"]], \"key\": null, \"payload\": \"\"}"));
    assert_refused(BYTES("{\"headers\": [], \"key\": nil, \"payload\": \"\"}"));
}

TEST(no_more_headers_are_read_than_there_is_room_for) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fputs("{\"headers\": [", out);
    for (int i = 0; i <= DELIVERY_HEADERS_MAX; i++)
        fputs(i == 0 ? "[\"a\", \"b\"]" : ",[\"a\", \"b\"]", out);
    fputs("], \"key\": null, \"payload\": \"\"}", out);
    fclose(out);
    assert_refused(slice_of(text, size));
    free(text);
}

RUN_TESTS(T(what_was_written_is_read_again), T(escapes_of_other_writers_are_read),
    T(a_cut_line_is_refused_wherever_it_is_cut), T(anything_else_is_refused),
    T(no_more_headers_are_read_than_there_is_room_for))

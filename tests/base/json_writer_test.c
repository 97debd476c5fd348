/* JSON is well-formed whatever is written, and says what was meant. */
#include "base/json_writer.h"

#include <math.h>
#include <stdlib.h>

#include "base/problems.h"
#include "base/yaml.h"
#include "testing.h"

static struct json_writer json;
static char *text;
static size_t text_size;

static void begin(bool is_spaced) {
    free(text);
    json = (struct json_writer){.out = open_memstream(&text, &text_size), .is_spaced = is_spaced};
    assert_non_null(json.out);
}

static int tear_down(void **state) {
    free(text);
    text = NULL;
    return 0;
}

static void assert_written(const char *expected) {
    assert_int_equal(fclose(json.out), 0);
    assert_string_equal(text, expected);
}

/* One of everything. */
static void write_all(void) {
    json_object(&json, NULL);
    json_text(&json, "text", "a");
    json_uint(&json, "most", UINT64_MAX);
    json_int(&json, "least", INT64_MIN);
    json_array(&json, "list");
    json_bool(&json, NULL, true);
    json_bool(&json, NULL, false);
    json_null(&json, NULL);
    json_array(&json, NULL);
    json_end(&json);
    json_object(&json, NULL);
    json_end(&json);
    json_end(&json);
    json_key(&json, slice_of_text("k\"\xc3\xa9"));
    json_array(&json, NULL);
    json_double(&json, NULL, 9, 0.1);
    json_double(&json, NULL, 17, -1e300);
    json_double(&json, NULL, 17, INFINITY);
    json_double(&json, NULL, 17, NAN);
    json_end(&json);
    fputs("1.50", json_value(&json, "own"));
    json_hex(&json, "hex", slice_of("\x00\xfe", 2));
    json_end_line(&json);
}

TEST(commas_and_brackets_stand_where_they_belong) {
    begin(false);
    write_all();
    assert_written("{\"text\":\"a\",\"most\":18446744073709551615,\"least\":-9223372036854775808,"
                   "\"list\":[true,false,null,[],{}],"
                   "\"k\\\"\xc3\xa9\":[0.1,-1.0000000000000001e+300,null,null],"
                   "\"own\":1.50,\"hex\":{\"hex\":\"00fe\"}}\n");
}

TEST(the_spaced_form_differs_only_by_a_blank_after_commas_and_colons) {
    begin(true);
    write_all();
    assert_written(
        "{\"text\": \"a\", \"most\": 18446744073709551615, \"least\": -9223372036854775808, "
        "\"list\": [true, false, null, [], {}], "
        "\"k\\\"\xc3\xa9\": [0.1, -1.0000000000000001e+300, null, null], "
        "\"own\": 1.50, \"hex\": {\"hex\": \"00fe\"}}\n");
}

TEST(values_and_ends_begin_lines_where_they_are_told_to) {
    begin(true);
    json_array(&json, NULL);
    for (uint64_t i = 0; i < 2; i++) {
        json_line(&json, 2);
        json_object(&json, NULL);
        json_uint(&json, "i", i);
        json_line(&json, 3);
        json_uint(&json, "j", i);
        json_end(&json);
    }
    json_line(&json, 0);
    json_end_all(&json);
    assert_written("[\n  {\"i\": 0,\n   \"j\": 0},\n  {\"i\": 1,\n   \"j\": 1}\n]");
}

TEST(no_text_breaks_its_string_or_steers_a_terminal) {
    begin(false);
    json_array(&json, NULL);
    json_text(&json, NULL, "\"\\/\n\t\x1b\x7f");
    json_text(&json, NULL, "\xc2\x9b\xc3\xa9\xe2\x80\xa8\xef\xbb\xbf\xf0\x9f\x98\x80");
    json_bytes(&json, NULL, slice_of_text("\"\\/\n\x1b\xc2\x9b\xc3\xa9\xe2\x80\xa8\xe2\x82\xac"));
    json_bytes(&json, NULL, slice_of("\xff\x00", 2));
    json_bytes(&json, NULL, slice_of(NULL, 0));
    json_end(&json);
    assert_written(
        "[\"\\\"\\\\/"
        "\\u000a\\u0009\\u001b\\u007f\",\"\\u009b\\u00e9\\u2028\\ufeff\xf0\x9f\x98\x80\","
        "\"\\\"\\\\/\\u000a\\u001b\\u009b\xc3\xa9\\u2028\xe2\x82\xac\",{\"hex\":\"ff00\"},\"\"]");
}

/* On the heap, so that a sanitizer sees a read beyond the end. */
TEST(a_character_that_is_cut_at_the_end_is_not_read_beyond_it) {
    static const char *const texts[] = {"\xc3", "\xe2", "\xe2\x82", "\xf0\x9f\x98"};
    static const char *const written[] = {"\"?\"", "\"?\"", "\"??\"", "\"???\""};
    for (size_t i = 0; i < 4; i++) {
        char *copy = strdup(texts[i]);
        assert_non_null(copy);
        begin(false);
        json_text(&json, NULL, copy);
        free(copy);
        assert_written(written[i]);
    }
}

/* Bytes of no character as '?'. */
static void mark(char *bytes) {
    for (char *at = bytes; *at != 0;) {
        size_t size = slice_utf8_first(slice_of_text(at));
        if (size == 0) *at = '?';
        at += size > 0 ? size : 1;
    }
}

TEST(a_reader_of_yaml_gets_random_bytes_back_but_for_those_of_no_character) {
    static const char *const pieces[] = {"a", "\"", "\\", "\n", "\xc2\x85", "\xe2\x80\xa8", "\xff",
        "\xef\xbf\xbe", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\x01", ":", "#", "\xc3"};
    unsigned seed = 1;
    for (int round = 0; round < 2000; round++) {
        char bytes[64] = "";
        for (int i = rand_r(&seed) % 12; i > 0; i--)
            strcat(bytes, pieces[(size_t)rand_r(&seed) % (sizeof pieces / sizeof pieces[0])]);
        begin(round % 2);
        json_object(&json, NULL);
        json_text(&json, "k", bytes);
        json_end(&json);
        fclose(json.out);
        struct problems problems;
        problems_init(&problems);
        struct yaml_document *document =
            yaml_parse("it", slice_of(text, text_size), YAML_KEEP_VARIABLES, &problems);
        assert_non_null(document);
        mark(bytes);
        assert_string_equal(yaml_get(yaml_root(document), "k")->text, bytes);
        yaml_destroy(document);
        problems_fini(&problems);
    }
}

#define J(name) cmocka_unit_test_teardown(name, tear_down)

RUN_TESTS(J(commas_and_brackets_stand_where_they_belong),
    J(the_spaced_form_differs_only_by_a_blank_after_commas_and_colons),
    J(values_and_ends_begin_lines_where_they_are_told_to),
    J(no_text_breaks_its_string_or_steers_a_terminal),
    J(a_character_that_is_cut_at_the_end_is_not_read_beyond_it),
    J(a_reader_of_yaml_gets_random_bytes_back_but_for_those_of_no_character))

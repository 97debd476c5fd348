#include "trace/reply.h"

#include <stdio.h>
#include <string.h>

#include "testing.h"

static struct reply reply;
static char message[REPLY_MESSAGE_BYTES];

static uint64_t rejected(const char *body) {
    struct error err;
    reply.size = 0;
    assert_int_equal(reply_take(&reply, slice_of_text(body), &err), ERR_OK);
    return reply_rejected(&reply, message);
}

TEST(spans_that_were_rejected_are_counted_as_a_number_or_a_string_of_one) {
    assert_int_equal(rejected("{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}"), 3);
    assert_string_equal(message, "it does not say why");
    assert_int_equal(
        rejected(
            "{\"partialSuccess\": {\"errorMessage\": \"too \\u0041ld\", \"rejectedSpans\": 7}}"),
        7);
    assert_string_equal(message, "too Ald");
}

/* Characters beyond U+FFFF are two escapes in JSON, and none in YAML. */
TEST(a_message_may_have_any_character_of_json) {
    assert_int_equal(rejected("{\"partialSuccess\":{\"rejectedSpans\":2,\"errorMessage\":"
                              "\"\\ud83d\\uDE00 \\\\ud83d \\u00e9 \\/\"}}"),
        2);
    assert_string_equal(message, "\xef\xbf\xbd\xef\xbf\xbd \\ud83d \xc3\xa9 /");
}

TEST(a_collector_that_took_all_says_nothing_or_none) {
    static const char *const bodies[] = {"", "{}", "{\"partialSuccess\":{}}",
        "{\"partialSuccess\":null}", "{\"partialSuccess\":{\"rejectedSpans\":\"0\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":0,\"errorMessage\":\"a warning\"}}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_int_equal(rejected(bodies[i]), 0);
}

TEST(what_is_no_answer_of_the_protocol_rejects_none) {
    static const char *const bodies[] = {"<html>fine</html>", "[[[[[[[[[[[[[[[[[[[[[[[[",
        "{\"partialSuccess\":{\"rejectedSpans\":\"-1\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":[3]}}",
        "{\"partialSuccess\":[{\"rejectedSpans\":3}]}", "{\"partialSuccess\":{\"rejectedSpans\":3",
        "\xff\xfe", "\"rejectedSpans\""};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_int_equal(rejected(bodies[i]), 0);
}

TEST(a_message_of_another_kind_is_none_and_a_long_one_is_cut) {
    assert_int_equal(
        rejected("{\"partialSuccess\":{\"rejectedSpans\":1,\"errorMessage\":{\"a\":\"b\"}}}"), 1);
    assert_string_equal(message, "it does not say why");
    char body[2 * REPLY_MESSAGE_BYTES], why[sizeof body];
    memset(why, 'w', sizeof why);
    snprintf(body, sizeof body, "{partialSuccess: {rejectedSpans: 1, errorMessage: \"%.*s\"}}",
        REPLY_MESSAGE_BYTES + 10, why);
    assert_int_equal(rejected(body), 1);
    assert_true(strlen(message) < REPLY_MESSAGE_BYTES);
    assert_true(strlen(message) > REPLY_MESSAGE_BYTES / 2);
}

TEST(of_an_answer_without_end_only_the_first_bytes_are_kept) {
    static char zeros[3000];
    struct error err;
    reply.size = 0;
    for (int i = 0; i < 10; i++)
        assert_int_equal(reply_take(&reply, slice_of(zeros, sizeof zeros), &err), ERR_OK);
    assert_int_equal(reply.size, REPLY_BYTES_MAX);
    assert_int_equal(reply_rejected(&reply, message), 0);
}

#define T(name) cmocka_unit_test(name)

RUN_TESTS(T(spans_that_were_rejected_are_counted_as_a_number_or_a_string_of_one),
    T(a_message_may_have_any_character_of_json), T(a_collector_that_took_all_says_nothing_or_none),
    T(what_is_no_answer_of_the_protocol_rejects_none),
    T(a_message_of_another_kind_is_none_and_a_long_one_is_cut),
    T(of_an_answer_without_end_only_the_first_bytes_are_kept))

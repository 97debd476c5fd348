#include "trace/context.h"

#include <string.h>

#include "testing.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define NO_TRACE "00000000000000000000000000000000"
#define NO_SPAN "0000000000000000"

static struct header headers[4];
static struct delivery message;
static struct trace_context context;

static bool read_context(const char *traceparent) {
    headers[0] = (struct header){slice_of_text("traceparent"), slice_of_text(traceparent)};
    message = (struct delivery){.header_count = 1, .headers = headers};
    return trace_context_read(&message, &context);
}

static struct slice state_of(struct slice value) {
    headers[0] = (struct header){slice_of_text("tracestate"), value};
    message = (struct delivery){.header_count = 1, .headers = headers};
    return trace_state_of(&message);
}

TEST(a_traceparent_is_taken_apart) {
    assert_true(read_context("00-" TRACE "-" SPAN "-01"));
    assert_true(slice_is_text(context.trace_id, TRACE));
    assert_true(slice_is_text(context.span_id, SPAN));
    assert_int_equal(context.flags, TRACE_SAMPLED);
    assert_true(read_context("00-" TRACE "-" SPAN "-fe"));
    assert_int_equal(context.flags, 0xfe);
}

TEST(a_later_version_may_say_more) {
    assert_true(read_context("01-" TRACE "-" SPAN "-01"));
    assert_true(read_context("fe-" TRACE "-" SPAN "-01-and-more"));
    assert_false(read_context("fe-" TRACE "-" SPAN "-01and-more"));
    assert_false(read_context("00-" TRACE "-" SPAN "-01-and-more"));
    assert_false(read_context("ff-" TRACE "-" SPAN "-01"));
}

TEST(what_is_cut_or_no_lower_case_hexadecimal_is_refused) {
    const char whole[] = "00-" TRACE "-" SPAN "-01";
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        char part[sizeof whole] = {0};
        memcpy(part, whole, size);
        assert_false(read_context(part));
    }
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        char wrong[sizeof whole];
        memcpy(wrong, whole, sizeof whole);
        wrong[i] = 'G';
        assert_false(read_context(wrong));
    }
    assert_false(read_context("00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01"));
    assert_false(read_context("00-" NO_TRACE "-" SPAN "-01"));
    assert_false(read_context("00-" TRACE "-" NO_SPAN "-01"));
}

TEST(of_several_the_last_one_counts_and_none_is_none) {
    headers[0] = (struct header){slice_of_text("traceparent"), slice_of_text("nonsense")};
    headers[1] =
        (struct header){slice_of_text("traceparent"), slice_of_text("00-" TRACE "-" SPAN "-01")};
    message = (struct delivery){.header_count = 2, .headers = headers};
    assert_true(trace_context_read(&message, &context));
    headers[2] = headers[0];
    message.header_count = 3;
    assert_false(trace_context_read(&message, &context));
    message.header_count = 0;
    assert_false(trace_context_read(&message, &context));
}

TEST(a_tracestate_is_text_of_512_bytes_at_most) {
    uint8_t large[513];
    memset(large, 'a', sizeof large);
    assert_int_equal(state_of(slice_of(large, 512)).size, 512);
    assert_int_equal(state_of(slice_of(large, 513)).size, 0);
    assert_int_equal(state_of(slice_of_text("vendor= a~")).size, 10);
    assert_int_equal(state_of(slice_of_text("vendor=\x7f")).size, 0);
    assert_int_equal(state_of(slice_of_text("vendor=\n")).size, 0);
    assert_int_equal(state_of(slice_of_text("vendor=\xc3\xa9")).size, 0);
    message.header_count = 0;
    assert_int_equal(trace_state_of(&message).size, 0);
}

#define T(name) cmocka_unit_test(name)

RUN_TESTS(T(a_traceparent_is_taken_apart), T(a_later_version_may_say_more),
    T(what_is_cut_or_no_lower_case_hexadecimal_is_refused),
    T(of_several_the_last_one_counts_and_none_is_none),
    T(a_tracestate_is_text_of_512_bytes_at_most))

/* Text that goes out is UTF-8, wherever it is cut and whatever it is made of. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "testing.h"

static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};

/* `shift` letters, then one character again and again. */
static char *shifted(size_t shift, const char *character) {
    static char text[2048];
    size_t size = strlen(character), used = shift;
    memset(text, 'a', shift);
    for (; used + size < sizeof text; used += size) memcpy(text + used, character, size);
    text[used] = 0;
    return text;
}

static void assert_utf8(const char *text) {
    if (!slice_is_utf8(slice_of_text(text))) fail_msg("no UTF-8: %s", text);
}

TEST(an_error_is_utf8_wherever_its_message_and_its_fix_are_cut) {
    for (size_t c = 0; c < 3; c++)
        for (size_t shift = 0; shift < 8; shift++) {
            struct error err;
            char *text = shifted(shift, characters[c]);
            error_set(&err, ERR_BAD_JOB, 0, text, "%s", text);
            assert_utf8(err.message);
            assert_utf8(err.fix);
            assert_true(strlen(err.message) > sizeof err.message - 5);
            error_set(
                &err, ERR_BAD_JOB, 0, "", "name '%.*s' is wrong", SLICE_TEXT(slice_of_text(text)));
            assert_utf8(err.message);
            assert_non_null(strstr(err.message, "' is wrong"));
        }
}

TEST(bytes_of_no_character_are_marked_and_the_rest_stays) {
    char text[] = "a\xff"
                  "b\xc3(\xe2\x82 \xed\xa0\x80 \xc3\xa9 \xf0\x9f\x98";
    text_mend(text);
    assert_string_equal(text, "a?b?(?? ??? \xc3\xa9 ");
}

TEST(random_bytes_become_utf8_and_utf8_stays_as_it_is) {
    unsigned seed = 1;
    for (int round = 0; round < 100000; round++) {
        char text[24], copy[24];
        size_t size = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < size; i++) text[i] = (char)(1 + rand_r(&seed) % 255);
        text[size < sizeof text ? size : size - 1] = 0;
        text_mend(text);
        assert_utf8(text);
        memcpy(copy, text, sizeof text);
        text_mend(text);
        assert_string_equal(text, copy);
    }
}

TEST(what_does_more_than_be_read_is_found_by_its_number_and_tamed) {
    static const struct {
        const char *text;
        unsigned number;
    } hazards[] = {{"\x1b", 0x1b}, {"\x7f", 0x7f}, {"\xc2\x80", 0x80}, {"\xc2\x85", 0x85},
        {"\xc2\x9f", 0x9f}, {"\xd8\x9c", 0x61c}, {"\xe2\x80\x8e", 0x200e}, {"\xe2\x80\xa8", 0x2028},
        {"\xe2\x80\xa9", 0x2029}, {"\xe2\x80\xae", 0x202e}, {"\xe2\x81\xa6", 0x2066},
        {"\xe2\x81\xa9", 0x2069}};
    static const char *const harmless[] = {"a", " ", "~", "\xc2\xa0", "\xd8\x9b", "\xe2\x80\x8d",
        "\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    unsigned number;
    struct error err;
    for (size_t i = 0; i < sizeof hazards / sizeof hazards[0]; i++) {
        struct slice text = slice_of_text(hazards[i].text);
        assert_int_equal(text_hazard(text, &number), text.size);
        assert_int_equal(number, hazards[i].number);
        error_set(&err, ERR_BAD_JOB, 0, hazards[i].text, "a%sb", hazards[i].text);
        assert_string_equal(err.message, "a?b");
        assert_string_equal(err.fix, "?");
    }
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        char text[8];
        assert_int_equal(text_hazard(slice_of_text(harmless[i]), &number), 0);
        strcpy(text, harmless[i]);
        text_tame(text);
        assert_string_equal(text, harmless[i]);
    }
    error_set(&err, ERR_BAD_JOB, 0, "", "two\nlines");
    assert_string_equal(err.message, "two?lines");
}

/* What is logged while `say` runs. */
static void log_with(char *ret, size_t size, enum log_format format,
    const struct log_fields *fields, const char *text) {
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_init(LOG_INFO, format);
    log_event(LOG_INFO, fields, "%s", text);
    log_init(LOG_OFF, LOG_TEXT);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t got = read(ends[0], ret, size - 1);
    close(ends[0]);
    assert_true(got > 0);
    ret[got] = 0;
}

static void log_into(char *ret, size_t size, enum log_format format, const char *text) {
    log_with(ret, size, format, &(struct log_fields){0}, text);
}

TEST(a_log_line_is_whole_however_long_its_fields_are) {
    static const uint8_t bytes[] = {0x1b, '"', '\\', 'a', 0xff};
    char line[8192], text[2000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        memset(text, bytes[i], sizeof text - 1);
        text[sizeof text - 1] = 0;
        const struct slice whole = slice_of(text, sizeof text - 1);
        const struct log_fields fields = {.event = text,
            .code = text,
            .topic = text,
            .partition = INT32_MIN,
            .offset = INT64_MIN,
            .job = whole,
            .program = whole,
            .trace_id = whole};
        log_with(line, sizeof line, LOG_JSON, &fields, text);
        assert_utf8(line);
        assert_in_range(strlen(line), 200, 4096);
        assert_string_equal(line + strlen(line) - 3, "\"}\n");
        assert_non_null(
            strstr(line, "\",\"partition\":-2147483648,\"offset\":-9223372036854775808,"));
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    }
}

TEST(a_log_line_is_one_line_of_utf8_without_controls) {
    static const enum log_format formats[] = {LOG_TEXT, LOG_JSON};
    char line[4096];
    for (size_t f = 0; f < 2; f++) {
        for (size_t c = 0; c < 3; c++)
            for (size_t shift = 0; shift < 8; shift++) {
                log_into(line, sizeof line, formats[f], shifted(shift, characters[c]));
                assert_utf8(line);
                assert_true(line[strlen(line) - 1] == '\n');
            }
        log_into(line, sizeof line, formats[f],
            "a\nb\x1b[2J\xc2\x9b"
            "2J\xff\"\\");
        assert_utf8(line);
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
        assert_null(strchr(line, 0x1b));
        assert_null(strstr(line, "\xc2\x9b"));
    }
}

RUN_TESTS(T(an_error_is_utf8_wherever_its_message_and_its_fix_are_cut),
    T(bytes_of_no_character_are_marked_and_the_rest_stays),
    T(random_bytes_become_utf8_and_utf8_stays_as_it_is),
    T(what_does_more_than_be_read_is_found_by_its_number_and_tamed),
    T(a_log_line_is_whole_however_long_its_fields_are),
    T(a_log_line_is_one_line_of_utf8_without_controls))

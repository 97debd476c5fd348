#include "cli/when.h"

#include "testing.h"

static const uint64_t now_ms = 1795000000000;

static uint64_t read_when(const char *text) {
    uint64_t ret;
    assert_true(when_read(text, now_ms, &ret));
    return ret;
}

TEST(so_long_ago) {
    assert_int_equal(read_when("0s"), now_ms);
    assert_int_equal(read_when("90s"), now_ms - 90000);
    assert_int_equal(read_when("15m"), now_ms - 15 * 60000);
    assert_int_equal(read_when("2h"), now_ms - 2 * 3600000);
    assert_int_equal(read_when("7d"), now_ms - 7 * 86400000ull);
}

TEST(longer_ago_than_time_has_run_is_its_beginning) {
    assert_int_equal(read_when("99999d"), 0);
    assert_int_equal(read_when("18446744073709551615d"), 0);
}

TEST(a_date) {
    assert_int_equal(read_when("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(read_when("2001-09-09T01:46:40Z"), 1000000000000);
    assert_int_equal(read_when("2024-02-29T00:00:00Z"), 1709164800000);
}

TEST(anything_else_is_refused) {
    static const char *const texts[] = {"", "2", "h", "-2h", "2 h", "2w", "2h30m", "yesterday",
        "2026-11-21", "2026-11-21T08:30:00", "2026-11-21T08:30:00+01:00", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "1969-12-31T23:59:59Z",
        "2001-09-09T01:46:40Zx"};
    uint64_t ret;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(when_read(texts[i], now_ms, &ret));
}

RUN_TESTS(T(so_long_ago), T(longer_ago_than_time_has_run_is_its_beginning), T(a_date),
    T(anything_else_is_refused))

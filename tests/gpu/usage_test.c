/* What NVML says of a device's use; it is a fake one (fake_nvml.c). */
#include "gpu/usage.h"

#include <stdlib.h>

#include "testing.h"

static struct usage_reading read_usage(const char *gpu) {
    struct usage_reading ret;
    setenv("FAKE_NVML", gpu, 1);
    struct usage *usage = usage_open("GPU-0");
    assert_non_null(usage);
    usage_read(usage, &ret);
    usage_close(usage);
    return ret;
}

TEST(a_gpu_says_all) {
    static const uint64_t expected[USAGE_COUNT] = {80ull << 30, 20ull << 30, 75, 41, 312500, 7, 2};
    struct usage_reading reading = read_usage("fine");
    assert_int_equal(reading.known, (1u << USAGE_COUNT) - 1);
    assert_memory_equal(reading.of, expected, sizeof expected);
}

TEST(what_a_slice_of_a_gpu_does_not_have_is_not_known) {
    struct usage_reading reading = read_usage("slice");
    assert_int_equal(reading.known, 1u << USAGE_memory_bytes | 1u << USAGE_memory_used_bytes);
    assert_true(usage_knows(&reading, USAGE_memory_used_bytes));
    assert_false(usage_knows(&reading, USAGE_power_milliwatts));
}

TEST(nothing_is_known_of_a_gpu_that_is_lost_or_that_nobody_knows) {
    struct usage_reading reading = read_usage("lost");
    assert_int_equal(reading.known, 0);
    setenv("FAKE_NVML", "unknown", 1);
    assert_null(usage_open("GPU-0"));
    setenv("FAKE_NVML", "dead", 1);
    assert_null(usage_open("GPU-0"));
    usage_close(NULL);
    reading.known = 1;
    usage_read(NULL, &reading);
    assert_int_equal(reading.known, 0);
}

RUN_TESTS(T(a_gpu_says_all), T(what_a_slice_of_a_gpu_does_not_have_is_not_known),
    T(nothing_is_known_of_a_gpu_that_is_lost_or_that_nobody_knows))

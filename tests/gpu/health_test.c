/* What is read from NVML; it is a fake one (fake_nvml.c), found as any other. */
#include "gpu/health.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"

static void assert_fault(const char *gpu, const char *fault) {
    char text[96] = "left from before";
    setenv("FAKE_NVML", gpu, 1);
    health_check("GPU-0", text, sizeof text);
    assert_string_equal(text, fault);
}

TEST(a_gpu_that_fell_off_the_bus_is_faulty) {
    assert_fault("lost", "it has fallen off the bus");
}

TEST(rows_that_could_not_be_replaced_are_a_fault_and_replaced_ones_are_none) {
    assert_fault("rows", "failing rows of its memory could not be replaced");
    assert_fault("fine", "");
}

TEST(nothing_is_known_of_a_gpu_that_the_library_does_not_know) {
    assert_fault("unknown", "");
    assert_fault("dead", "");
}

RUN_TESTS(T(a_gpu_that_fell_off_the_bus_is_faulty),
    T(rows_that_could_not_be_replaced_are_a_fault_and_replaced_ones_are_none),
    T(nothing_is_known_of_a_gpu_that_the_library_does_not_know))

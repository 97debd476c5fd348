/** What every unit test includes: cmocka, and tests named by the behaviour they show. */
#ifndef TESTS_TESTING_H
#define TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** TEST(decode_rejects_a_cut_length) { ... } */
#define TEST(name) static void name(void **state)

/** Runs the listed tests; the value of main(). */
#define RUN_TESTS(...)                                                                             \
    int main(void) {                                                                               \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
#define T(name) cmocka_unit_test(name)

#endif

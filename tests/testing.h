/** What every unit test includes: cmocka, and tests named by the behaviour they show. */
#ifndef TESTS_TESTING_H
#define TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/groups.h"

/** TEST(decode_rejects_a_cut_length) { ... } */
#define TEST(name) static void name(void **state)

/** In the place of main(): `TEST_MAIN() { ... }` runs the tests of this file, when the program is
 * told its name (support/groups.h). */
#define TEST_MAIN()                                                                                \
    static int run_this_file(void);                                                                \
    __attribute__((constructor)) static void add_this_file(void) {                                 \
        static struct test_group group = {.file = __FILE__, .run = run_this_file};                 \
        test_group_add(&group);                                                                    \
    }                                                                                              \
    static int run_this_file(void)

/** Runs the listed tests, in the place of main(). */
#define RUN_TESTS(...)                                                                             \
    TEST_MAIN() {                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
#define T(name) cmocka_unit_test(name)

#endif

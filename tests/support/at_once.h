/**
 * Runs the tests of a file side by side, each in a process of its own: for tests that wait for a
 * broker and compute next to nothing. Threads: none yet.
 */
#ifndef TESTS_SUPPORT_AT_ONCE_H
#define TESTS_SUPPORT_AT_ONCE_H

#include "testing.h"

/** In the place of RUN_TESTS. */
#define RUN_TESTS_AT_ONCE(...)                                                                     \
    TEST_MAIN() {                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return run_at_once(tests, sizeof tests / sizeof tests[0]);                                 \
    }

/** Prints what each test printed, in the order of the list; returns how many failed. */
int run_at_once(const struct CMUnitTest *tests, size_t count);

#endif

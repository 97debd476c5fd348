/* Proves: launch signatures tell launches apart, and use all of their bits. */
#include "plan/signature.h"

#include "testing.h"

enum { ENTRIES = 1000, APART = 1 << 16, SLOTS = 4096 };

static uint64_t signature_of(uintptr_t entry) {
    struct job job = {.repeat = 1};
    struct plan_launch launch = {.entry = (const struct entry *)entry,
        .grid = {1, 1, 1},
        .block = {256, 1, 1},
        .iterations = 1};
    const struct plan plan = {.job = &job, .launches = &launch, .launch_count = 1};
    return plan_signature(&plan);
}

TEST(signatures_of_many_entries_spread_over_a_table) {
    static bool is_used[SLOTS];
    size_t used = 0;
    /* as of programs, each of which has memory of its own */
    for (uintptr_t i = 1; i <= ENTRIES; i++) {
        bool *slot = &is_used[signature_of(i * APART) % SLOTS];
        used += !*slot;
        *slot = true;
    }
    assert_true(used > ENTRIES * 3 / 4);
}

TEST(a_signature_says_how_wide_a_launch_is) {
    struct job job = {.repeat = 1};
    struct plan_launch launch = {.grid = {1, 1, 1}, .block = {256, 1, 1}};
    const struct plan plan = {.job = &job, .launches = &launch, .launch_count = 1};
    uint64_t narrow = plan_signature(&plan);
    assert_int_equal(narrow, plan_signature(&plan));
    launch.grid[0] = 2;
    assert_int_not_equal(narrow, plan_signature(&plan));
}

RUN_TESTS(
    T(signatures_of_many_entries_spread_over_a_table), T(a_signature_says_how_wide_a_launch_is))

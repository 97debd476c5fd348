/* Payloads of a few bytes, as many as a sender likes: what they take, and what they drive out. */
#include "gpu/statics_rig.h"
#include "testing.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SMALL_BYTES = 4, MANY = 10000, LARGE = MANY };

static void use_once(struct rig *rig, uint32_t n) {
    statics_unref(rig->statics, rig_get(rig, n, SMALL_BYTES));
}

TEST(small_payloads_are_charged_for_their_notes_in_host_memory_too) {
    struct rig rig;
    rig_open(&rig, MIB);
    for (uint32_t n = 0; n < MANY; n++) use_once(&rig, n);
    uint32_t found = 0;
    for (uint32_t n = 0; n < MANY; n++) found += rig_has(&rig, n);
    assert_in_range(found, 1, MIB / (4 * KIB));
    rig_close(&rig);
}

TEST(there_are_no_more_payloads_than_the_configuration_says_however_large_the_budget) {
    struct rig rig;
    rig_open(&rig, 200 * MIB);
    for (uint32_t n = 0; n < MANY; n++) use_once(&rig, n);
    uint32_t found = 0;
    for (uint32_t n = 0; n < MANY; n++) found += rig_has(&rig, n);
    assert_in_range(found, 1, RIG_ENTRIES_MAX);
    rig_close(&rig);
}

static void bring_large(struct rig *rig) {
    struct static_entry *entry = rig_get(rig, LARGE, 4 * MIB);
    check_bytes(rig, entry, LARGE, 4 * MIB, rig->lane.stream);
    statics_unref(rig->statics, entry);
    for (int i = 0; i < 300; i++) assert_true(rig_has(rig, LARGE)); /* looking is using */
}

TEST(small_payloads_that_are_used_once_leave_a_large_one_in_use) {
    struct rig rig;
    rig_open(&rig, 5 * MIB);
    bring_large(&rig);
    for (uint32_t n = 0; n < MANY; n++) use_once(&rig, n);
    assert_true(rig_has(&rig, LARGE));
    rig_close(&rig);
}

/* Each of theirs is used four times; the large one once for 80 such uses. */
TEST(a_strangers_own_payloads_leave_one_that_is_used_now_and_then) {
    struct rig rig;
    rig_open(&rig, 5 * MIB);
    bring_large(&rig);
    for (uint32_t n = 0; n < MANY; n++) {
        for (int i = 0; i < 4; i++) use_once(&rig, n);
        if (n % 20 == 0) assert_true(rig_has(&rig, LARGE));
    }
    rig_close(&rig);
}

RUN_TESTS(T(small_payloads_are_charged_for_their_notes_in_host_memory_too),
    T(there_are_no_more_payloads_than_the_configuration_says_however_large_the_budget),
    T(small_payloads_that_are_used_once_leave_a_large_one_in_use),
    T(a_strangers_own_payloads_leave_one_that_is_used_now_and_then))

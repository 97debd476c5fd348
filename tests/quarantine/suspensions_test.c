/* Who is suspended after convictions, and who is not, whatever a sender does. */
#include "quarantine/suspensions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/state_rig.h"
#include "testing.h"

#define NOW 1800000000000u

static const struct suspension_rules rules = {
    .convictions = 3, .window_ms = 60000, .for_ms = 30000};

/* What the executor does with a conviction. */
static void convict(struct state_rig *rig, const char *key, const char *program, uint64_t now_ms) {
    (void)suspensions_count_death(rig->state, &rules, slice_of_text(key), now_ms);
    suspensions_convict(rig->state, &rules, slice_of_text(key), slice_of_text(program), now_ms);
}

static bool is_key_refused(struct state_rig *rig, const char *key, uint64_t now_ms) {
    return suspensions_key_until(rig->state, slice_of_text(key), now_ms) != 0;
}

static bool is_refused(
    struct state_rig *rig, const char *key, const char *program, uint64_t now_ms) {
    return is_key_refused(rig, key, now_ms) ||
           suspensions_program_until(
               rig->state, slice_of_text(key), slice_of_text(program), now_ms) != 0;
}

TEST(a_key_is_suspended_for_a_while_and_others_go_on_with_the_same_program) {
    struct state_rig *rig = *state;
    for (unsigned i = 0; i < 2; i++) convict(rig, "hostile", "p", NOW + i);
    assert_false(is_refused(rig, "hostile", "p", NOW + 2));
    convict(rig, "hostile", "p", NOW + 2);
    assert_true(is_refused(rig, "hostile", "p", NOW + 2));
    assert_true(is_refused(rig, "hostile", "another", NOW + 2 + 29999));
    assert_false(is_refused(rig, "hostile", "p", NOW + 2 + 30000));
    assert_false(is_refused(rig, "newcomer", "p", NOW + 2));
    assert_false(is_refused(rig, "", "p", NOW + 2));
    assert_int_equal(suspensions_count(rig->state, SUSPENSION_KEY, NOW + 2), 1);
    assert_int_equal(suspensions_count(rig->state, SUSPENSION_PROGRAM, NOW + 2), 0);
}

TEST(convictions_outside_the_window_are_forgotten) {
    struct state_rig *rig = *state;
    for (unsigned i = 0; i < 9; i++) convict(rig, "slow", "p", NOW + i * 30001);
    assert_false(is_refused(rig, "slow", "p", NOW + 8 * 30001));
}

TEST(a_program_is_suspended_for_newcomers_and_not_for_those_who_use_it) {
    struct state_rig *rig = *state;
    suspensions_praise(rig->state, slice_of_text("regular"), slice_of_text("p"), NOW);
    const char *const keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_false(is_refused(rig, "newcomer", "p", NOW));
        convict(rig, keys[i], "p", NOW);
    }
    assert_true(is_refused(rig, "newcomer", "p", NOW));
    assert_true(is_refused(rig, "", "p", NOW));
    assert_false(is_refused(rig, "regular", "p", NOW));
    assert_false(is_refused(rig, "newcomer", "another", NOW));
    convict(rig, "regular", "p", NOW); /* good standing ends with the first conviction */
    assert_true(is_refused(rig, "regular", "p", NOW));
}

TEST(jobs_without_a_key_share_their_fate) {
    struct state_rig *rig = *state;
    for (int i = 0; i < 3; i++) convict(rig, "", "p", NOW);
    assert_true(is_refused(rig, "", "p", NOW));
    assert_false(is_refused(rig, "", "another", NOW));
    assert_int_equal(suspensions_count(rig->state, SUSPENSION_KEY, NOW), 0);
}

TEST(fresh_keys_in_any_number_free_nobody_and_evict_no_regular) {
    struct state_rig *rig = *state;
    char key[32];
    suspensions_praise(rig->state, slice_of_text("regular"), slice_of_text("p"), NOW);
    for (int i = 0; i < 3; i++) convict(rig, "hostile", "p", NOW);
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "fresh-%u", i);
        suspensions_praise(rig->state, slice_of_text(key), slice_of_text("p"), NOW);
        convict(rig, key, "p", NOW + 1);
    }
    assert_true(is_refused(rig, "hostile", "p", NOW + 1));
    assert_true(is_key_refused(rig, "hostile", NOW + 1));
    assert_true(is_refused(rig, "newcomer", "p", NOW + 1));
    assert_false(is_refused(rig, "regular", "p", NOW + 1));
}

TEST(a_suspension_outlives_executors_and_is_lifted_beside_them) {
    struct state_rig *rig = *state;
    struct state *tool;
    struct error err;
    for (int i = 0; i < 3; i++) convict(rig, "hostile", "p", NOW);
    for (int i = 0; i < 3; i++) convict(rig, "", "q", NOW);
    state_rig_open_again(rig);
    assert_true(is_refused(rig, "hostile", "p", NOW));
    assert_int_equal(state_touch(rig->path, &tool, &err), ERR_OK);
    assert_false(suspensions_lift(tool, SUSPENSION_KEY, slice_of_text("another")));
    suspensions_hold(rig->state, slice_of_text("hostile"), 5);
    assert_int_equal(suspensions_held_until(tool, slice_of_text("hostile")), 5);
    assert_true(suspensions_lift(tool, SUSPENSION_KEY, slice_of_text("hostile")));
    assert_int_equal(suspensions_held_until(rig->state, slice_of_text("hostile")), 0);
    assert_false(is_refused(rig, "hostile", "p", NOW));
    assert_true(is_refused(rig, "", "q", NOW));
    suspensions_lift_all(tool);
    assert_false(is_refused(rig, "", "q", NOW));
    state_close(tool);
}

TEST(names_of_any_bytes_are_kept_cut_and_found_whole) {
    struct state_rig *rig = *state;
    static uint8_t bytes[1000000];
    struct slice name = slice_of(bytes, sizeof bytes);
    for (int i = 0; i < 3; i++) (void)suspensions_count_death(rig->state, &rules, name, NOW);
    assert_true(suspensions_key_until(rig->state, name, NOW) != 0);
    assert_int_equal(suspensions_key_until(rig->state, slice_of(bytes, sizeof bytes - 1), NOW), 0);
}

TEST(nobody_is_suspended_where_that_is_switched_off_or_no_state_is_kept) {
    struct state_rig *rig = *state;
    const struct suspension_rules none = {.convictions = 0, .window_ms = 60000, .for_ms = 30000};
    for (int i = 0; i < 99; i++) {
        (void)suspensions_count_death(rig->state, &none, slice_of_text("k"), NOW);
        suspensions_convict(rig->state, &none, slice_of_text("k"), slice_of_text("p"), NOW);
        suspensions_convict(NULL, &rules, slice_of_text("k"), slice_of_text("p"), NOW);
    }
    assert_false(suspensions_may_apply(rig->state));
    assert_false(suspensions_may_apply(NULL));
    assert_int_equal(suspensions_count(NULL, SUSPENSION_KEY, NOW), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, state_rig_set_up, state_rig_tear_down)
RUN_TESTS(F(a_key_is_suspended_for_a_while_and_others_go_on_with_the_same_program),
    F(convictions_outside_the_window_are_forgotten),
    F(a_program_is_suspended_for_newcomers_and_not_for_those_who_use_it),
    F(jobs_without_a_key_share_their_fate),
    F(fresh_keys_in_any_number_free_nobody_and_evict_no_regular),
    F(a_suspension_outlives_executors_and_is_lifted_beside_them),
    F(names_of_any_bytes_are_kept_cut_and_found_whole),
    F(nobody_is_suspended_where_that_is_switched_off_or_no_state_is_kept))

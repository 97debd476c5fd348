/* Who is suspended after convictions, and who is not, whatever a sender does. */
#include "state/suspensions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/scratch.h"
#include "testing.h"

#define NOW 1800000000000u

static const struct suspension_rules rules = {
    .convictions = 3, .window_ms = 60000, .for_ms = 30000};

struct fixture {
    char *folder;
    char path[256];
    struct state *state;
};

static void open_again(struct fixture *fixture) {
    struct error set_aside, err;
    state_close(fixture->state);
    assert_int_equal(state_open(fixture->path, 0, &fixture->state, &set_aside, &err), ERR_OK);
    assert_int_equal(set_aside.code, ERR_OK);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = scratch_create();
    snprintf(fixture->path, sizeof fixture->path, "%s/gpu0.state", fixture->folder);
    open_again(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    state_close(fixture->state);
    scratch_remove(fixture->folder);
    free(fixture);
    return 0;
}

/* What the executor does with a conviction. */
static void convict(
    struct fixture *fixture, const char *key, const char *program, uint64_t now_ms) {
    suspensions_convict_key(fixture->state, &rules, slice_of_text(key), now_ms);
    suspensions_convict(fixture->state, &rules, slice_of_text(key), slice_of_text(program), now_ms);
}

static bool is_key_refused(struct fixture *fixture, const char *key, uint64_t now_ms) {
    return suspensions_key_until(fixture->state, slice_of_text(key), now_ms) != 0;
}

static bool is_refused(
    struct fixture *fixture, const char *key, const char *program, uint64_t now_ms) {
    return is_key_refused(fixture, key, now_ms) ||
           suspensions_program_until(
               fixture->state, slice_of_text(key), slice_of_text(program), now_ms) != 0;
}

TEST(a_key_is_suspended_for_a_while_and_others_go_on_with_the_same_program) {
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < 2; i++) convict(fixture, "hostile", "p", NOW + i);
    assert_false(is_refused(fixture, "hostile", "p", NOW + 2));
    convict(fixture, "hostile", "p", NOW + 2);
    assert_true(is_refused(fixture, "hostile", "p", NOW + 2));
    assert_true(is_refused(fixture, "hostile", "another", NOW + 2 + 29999));
    assert_false(is_refused(fixture, "hostile", "p", NOW + 2 + 30000));
    assert_false(is_refused(fixture, "newcomer", "p", NOW + 2));
    assert_false(is_refused(fixture, "", "p", NOW + 2));
    assert_int_equal(suspensions_count(fixture->state, SUSPENSION_KEY, NOW + 2), 1);
    assert_int_equal(suspensions_count(fixture->state, SUSPENSION_PROGRAM, NOW + 2), 0);
}

TEST(convictions_outside_the_window_are_forgotten) {
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < 9; i++) convict(fixture, "slow", "p", NOW + i * 30001);
    assert_false(is_refused(fixture, "slow", "p", NOW + 8 * 30001));
}

TEST(a_program_is_suspended_for_newcomers_and_not_for_those_who_use_it) {
    struct fixture *fixture = *state;
    suspensions_praise(fixture->state, slice_of_text("regular"), slice_of_text("p"), NOW);
    const char *const keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_false(is_refused(fixture, "newcomer", "p", NOW));
        convict(fixture, keys[i], "p", NOW);
    }
    assert_true(is_refused(fixture, "newcomer", "p", NOW));
    assert_true(is_refused(fixture, "", "p", NOW));
    assert_false(is_refused(fixture, "regular", "p", NOW));
    assert_false(is_refused(fixture, "newcomer", "another", NOW));
    convict(fixture, "regular", "p", NOW); /* good standing ends with the first conviction */
    assert_true(is_refused(fixture, "regular", "p", NOW));
}

TEST(jobs_without_a_key_share_their_fate) {
    struct fixture *fixture = *state;
    for (int i = 0; i < 3; i++) convict(fixture, "", "p", NOW);
    assert_true(is_refused(fixture, "", "p", NOW));
    assert_false(is_refused(fixture, "", "another", NOW));
    assert_int_equal(suspensions_count(fixture->state, SUSPENSION_KEY, NOW), 0);
}

TEST(fresh_keys_in_any_number_free_nobody_and_evict_no_regular) {
    struct fixture *fixture = *state;
    char key[32];
    suspensions_praise(fixture->state, slice_of_text("regular"), slice_of_text("p"), NOW);
    for (int i = 0; i < 3; i++) convict(fixture, "hostile", "p", NOW);
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "fresh-%u", i);
        suspensions_praise(fixture->state, slice_of_text(key), slice_of_text("p"), NOW);
        convict(fixture, key, "p", NOW + 1);
    }
    assert_true(is_refused(fixture, "hostile", "p", NOW + 1));
    assert_true(is_key_refused(fixture, "hostile", NOW + 1));
    assert_true(is_refused(fixture, "newcomer", "p", NOW + 1));
    assert_false(is_refused(fixture, "regular", "p", NOW + 1));
}

TEST(a_suspension_outlives_executors_and_is_lifted_beside_them) {
    struct fixture *fixture = *state;
    struct state *tool;
    struct error err;
    for (int i = 0; i < 3; i++) convict(fixture, "hostile", "p", NOW);
    for (int i = 0; i < 3; i++) convict(fixture, "", "q", NOW);
    open_again(fixture);
    assert_true(is_refused(fixture, "hostile", "p", NOW));
    assert_int_equal(state_touch(fixture->path, &tool, &err), ERR_OK);
    assert_false(suspensions_lift(tool, SUSPENSION_KEY, slice_of_text("another")));
    assert_true(suspensions_lift(tool, SUSPENSION_KEY, slice_of_text("hostile")));
    assert_false(is_refused(fixture, "hostile", "p", NOW));
    assert_true(is_refused(fixture, "", "q", NOW));
    suspensions_lift_all(tool);
    assert_false(is_refused(fixture, "", "q", NOW));
    state_close(tool);
}

TEST(names_of_any_bytes_are_kept_cut_and_found_whole) {
    struct fixture *fixture = *state;
    static uint8_t bytes[1000000];
    struct slice name = slice_of(bytes, sizeof bytes);
    for (int i = 0; i < 3; i++) suspensions_convict_key(fixture->state, &rules, name, NOW);
    assert_true(suspensions_key_until(fixture->state, name, NOW) != 0);
    assert_int_equal(
        suspensions_key_until(fixture->state, slice_of(bytes, sizeof bytes - 1), NOW), 0);
}

TEST(nobody_is_suspended_where_that_is_switched_off_or_no_state_is_kept) {
    struct fixture *fixture = *state;
    const struct suspension_rules none = {.convictions = 0, .window_ms = 60000, .for_ms = 30000};
    for (int i = 0; i < 99; i++) {
        suspensions_convict_key(fixture->state, &none, slice_of_text("k"), NOW);
        suspensions_convict(fixture->state, &none, slice_of_text("k"), slice_of_text("p"), NOW);
        suspensions_convict(NULL, &rules, slice_of_text("k"), slice_of_text("p"), NOW);
    }
    assert_false(suspensions_may_apply(fixture->state));
    assert_false(suspensions_may_apply(NULL));
    assert_int_equal(suspensions_count(NULL, SUSPENSION_KEY, NOW), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(a_key_is_suspended_for_a_while_and_others_go_on_with_the_same_program),
    F(convictions_outside_the_window_are_forgotten),
    F(a_program_is_suspended_for_newcomers_and_not_for_those_who_use_it),
    F(jobs_without_a_key_share_their_fate),
    F(fresh_keys_in_any_number_free_nobody_and_evict_no_regular),
    F(a_suspension_outlives_executors_and_is_lifted_beside_them),
    F(names_of_any_bytes_are_kept_cut_and_found_whole),
    F(nobody_is_suspended_where_that_is_switched_off_or_no_state_is_kept))

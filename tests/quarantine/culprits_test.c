/* Which instances of an array end executors: a model of a device dies of some, and each life walks
 * over the instances as the state file says. */
#include "quarantine/culprits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quarantine/attribution.h"
#include "support/state_rig.h"
#include "testing.h"

enum { INSTANCES_MAX = 100000, DEATHS_MAX = 1000 };

static const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 4};
static const struct position position = {.topic = "jobs", .partition = 1, .offset = 7};
static const struct state_death crash = {
    .kind = STATE_DEATH_SIGNAL, .native = 11, .message = "SIGSEGV"};
static uint8_t is_deadly[INSTANCES_MAX], has_run[INSTANCES_MAX];
static uint32_t deaths, culprits_max;

static void begin(struct state_rig *rig) {
    struct error err;
    assert_int_equal(state_begin(rig->state, &shape, 0, "", &err), ERR_OK);
}

static int set_up(void **state) {
    (void)state_rig_set_up(state);
    struct state_rig *rig = *state;
    begin(rig);
    size_t capacity;
    struct state_suspect *suspect = state_suspects(rig->state, &capacity);
    assert_true(state_entry_of(rig->state, &position, 1, &suspect->at));
    suspect->standing = STATE_SUSPECT;
    memset(is_deadly, 0, sizeof is_deadly);
    deaths = 0;
    culprits_max = 8;
    return 0;
}

static struct state_suspect *the_suspect(struct state_rig *rig) {
    size_t capacity;
    return state_suspects(rig->state, &capacity);
}

static struct state_search *search_of(struct state_rig *rig, uint32_t instances) {
    return culprits_search(rig->state, &position, instances, culprits_max);
}

/* A life up to its end. True: all of the array has run, each instance once. */
static bool live(struct state_rig *rig, uint32_t instances, uint32_t most) {
    struct array_slice slice;
    the_suspect(rig)->standing = STATE_ALONE;
    struct culprits_walk walk = culprits_walk(search_of(rig, instances), instances, most);
    memset(has_run, 0, instances);
    while (culprits_walk_next(&walk, &slice)) {
        assert_true(slice.count > 0 && slice.count <= most);
        assert_true(slice.first < instances && slice.count <= instances - slice.first);
        bool dies = false;
        for (uint32_t i = slice.first; i < slice.first + slice.count; i++) {
            assert_int_equal(has_run[i]++, 0);
            dies = dies || is_deadly[i];
        }
        if (dies) return false;
        culprits_walk_fence(&walk);
    }
    return true;
}

static void die(struct state_rig *rig, const struct state_death *death) {
    assert_true(deaths++ < DEATHS_MAX);
    if (death != NULL) state_record_death(rig->state, death);
    state_rig_open_again(rig);
    (void)attribution_apply(rig->state);
    begin(rig);
}

/* Lives, until the array has run or is convicted as a whole. */
static enum state_standing run(struct state_rig *rig, uint32_t instances, uint32_t most) {
    while (the_suspect(rig)->standing == STATE_SUSPECT)
        if (live(rig, instances, most)) break;
        else die(rig, &crash);
    return the_suspect(rig)->standing;
}

static void assert_found(struct state_rig *rig, uint32_t instances) {
    const struct state_search *search = search_of(rig, instances);
    uint32_t count = 0;
    for (uint32_t i = 0; i < instances; i++) {
        count += is_deadly[i];
        assert_int_equal(has_run[i], !is_deadly[i]);
    }
    assert_int_equal(search->culprit_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(is_deadly[search->culprits[i].instance]);
        assert_int_equal(search->culprits[i].code, ERR_WORKER_CRASH);
        assert_string_equal(search->culprits[i].message, "SIGSEGV");
    }
}

TEST(five_of_100_000_are_found_and_all_others_run) {
    struct state_rig *rig = *state;
    static const uint32_t culprits[] = {0, 17, 4711, 65536, 99999};
    for (size_t i = 0; i < 5; i++) is_deadly[culprits[i]] = 1;
    assert_int_equal(run(rig, 100000, 4096), STATE_ALONE);
    assert_found(rig, 100000);
    assert_true(deaths <= 3 * 5);
}

TEST(culprits_at_any_place_are_found_whatever_the_size_of_a_slice) {
    struct state_rig *rig = *state;
    for (uint32_t most = 1; most <= 300; most = most * 3 + 1)
        for (uint32_t round = 0; round < 20; round++) {
            memset(is_deadly, 0, sizeof is_deadly);
            for (int i = 0; i < 6; i++) is_deadly[rand() % 301] = 1;
            the_suspect(rig)->standing = STATE_SUSPECT;
            the_suspect(rig)->tries = deaths = 0;
            assert_int_equal(run(rig, 301, most), STATE_ALONE);
            assert_found(rig, 301);
            culprits_forget(rig->state, &the_suspect(rig)->at);
        }
}

TEST(culprits_side_by_side_cost_a_death_each) {
    struct state_rig *rig = *state;
    for (uint32_t i = 10; i < 17; i++) is_deadly[i] = 1;
    assert_int_equal(run(rig, 50, 50), STATE_ALONE);
    assert_found(rig, 50);
    assert_int_equal(deaths, 1 + 7);
}

TEST(one_culprit_too_many_convicts_the_array) {
    struct state_rig *rig = *state;
    for (uint32_t i = 0; i < 9; i++) is_deadly[10 * i] = 1;
    assert_int_equal(run(rig, 100, 32), STATE_CONVICTED);
    is_deadly[0] = 0;
    the_suspect(rig)->standing = STATE_SUSPECT;
    culprits_forget(rig->state, &the_suspect(rig)->at);
    assert_int_equal(run(rig, 100, 32), STATE_ALONE);
    assert_found(rig, 100);
}

TEST(an_array_of_culprits_alone_is_convicted) {
    struct state_rig *rig = *state;
    is_deadly[0] = is_deadly[1] = is_deadly[2] = 1;
    assert_int_equal(run(rig, 1, 1), STATE_CONVICTED);
    the_suspect(rig)->standing = STATE_SUSPECT;
    culprits_forget(rig->state, &the_suspect(rig)->at);
    assert_int_equal(run(rig, 3, 2), STATE_CONVICTED);
}

TEST(without_convictions_of_instances_an_array_is_as_any_job) {
    struct state_rig *rig = *state;
    culprits_max = 0;
    is_deadly[5] = 1;
    assert_null(search_of(rig, 100));
    assert_int_equal(run(rig, 100, 10), STATE_CONVICTED);
    assert_int_equal(deaths, 1);
}

TEST(instances_that_are_deadly_only_together_are_tried_three_times) {
    struct state_rig *rig = *state;
    struct array_slice slice;
    while (the_suspect(rig)->standing == STATE_SUSPECT) {
        the_suspect(rig)->standing = STATE_ALONE;
        struct culprits_walk walk = culprits_walk(search_of(rig, 1000), 1000, 100);
        bool dies = false;
        while (!dies && culprits_walk_next(&walk, &slice)) {
            dies = slice.count == 100 && slice.first >= 500;
            if (!dies) culprits_walk_fence(&walk);
        }
        assert_true(dies);
        die(rig, &crash);
    }
    assert_int_equal(the_suspect(rig)->standing, STATE_CONVICTED);
    assert_int_equal(deaths, 1 + CULPRITS_FRUITLESS_MAX);
}

TEST(culprits_of_one_slice_cost_it_one_death_and_each_of_them_two) {
    struct state_rig *rig = *state;
    for (uint32_t i = 0; i < 8; i++) is_deadly[7 + 500 * i] = 1;
    while (!live(rig, 4096, 4096)) die(rig, &crash);
    assert_int_equal(search_of(rig, 4096)->culprit_count, 8);
    assert_int_equal(deaths, 1 + 2 * 8);
}

TEST(a_death_between_slices_is_the_arrays_own) {
    struct state_rig *rig = *state;
    assert_true(live(rig, 100, 10));
    die(rig, &crash);
    assert_int_equal(the_suspect(rig)->standing, STATE_CONVICTED);
}

TEST(deaths_for_no_known_cause_are_no_instances_and_the_fourth_convicts) {
    struct state_rig *rig = *state;
    is_deadly[50] = is_deadly[70] = 1;
    for (int i = 0; i < 4; i++) { /* these are explained, and leave all tries for the others */
        assert_false(live(rig, 100, 100));
        die(rig, &crash);
    }
    for (int i = 0; i < ATTRIBUTION_TRIES_MAX; i++) {
        is_deadly[99] = 1;
        (void)live(rig, 100, 100);
        die(rig, NULL);
        assert_int_equal(the_suspect(rig)->standing, STATE_SUSPECT);
        assert_int_equal(search_of(rig, 100)->culprit_count, 2);
    }
    (void)live(rig, 100, 100);
    die(rig, NULL);
    assert_int_equal(the_suspect(rig)->standing, STATE_CONVICTED);
}

TEST(where_the_file_has_no_room_for_a_search_there_is_none) {
    struct state_rig *rig = *state;
    for (int64_t i = 0; i < STATE_SEARCHES_MAX; i++) {
        const struct position other = {.topic = "jobs", .partition = 2, .offset = i};
        assert_non_null(culprits_search(rig->state, &other, 100, 8));
    }
    assert_null(search_of(rig, 100));
    is_deadly[5] = 1;
    assert_int_equal(run(rig, 100, 10), STATE_CONVICTED);
    assert_null(culprits_search(NULL, &position, 100, 8));
}

TEST(a_search_of_an_array_of_another_size_starts_anew) {
    struct state_rig *rig = *state;
    is_deadly[50] = 1;
    assert_int_equal(run(rig, 100, 10), STATE_ALONE);
    assert_int_equal(search_of(rig, 100)->culprit_count, 1);
    assert_int_equal(search_of(rig, 40)->culprit_count, 0);
}

TEST(a_damaged_search_is_forgotten_when_the_file_is_opened) {
    struct state_rig *rig = *state;
    struct state_search *search = search_of(rig, 100), good = *search;
    const struct state_range far = {.first = UINT32_MAX, .count = UINT32_MAX};
    for (int i = 0; i < 6; i++) {
        search = state_searches(rig->state);
        *search = good;
        if (i == 0) search->culprit_count = UINT32_MAX;
        if (i == 1) search->running = far;
        if (i == 2) search->suspected = far;
        if (i == 3) search->culprits_max = STATE_CULPRITS_MAX + 1;
        search->culprits[0] = search->culprits[1] = (struct state_culprit){.code = ERR_GPU_HANG};
        if (i == 5) search->culprit_count = 2; /* the same one */
        if (i == 4) search->culprit_count = 1, search->culprits[0].instance = 100;
        state_rig_open_again(rig);
        assert_null(culprits_find(rig->state, &good.at));
    }
    *state_searches(rig->state) = good;
    state_rig_open_again(rig);
    assert_non_null(culprits_find(rig->state, &good.at));
}

#define I(name) cmocka_unit_test_setup_teardown(name, set_up, state_rig_tear_down)
RUN_TESTS(I(five_of_100_000_are_found_and_all_others_run),
    I(culprits_at_any_place_are_found_whatever_the_size_of_a_slice),
    I(culprits_side_by_side_cost_a_death_each), I(one_culprit_too_many_convicts_the_array),
    I(an_array_of_culprits_alone_is_convicted),
    I(without_convictions_of_instances_an_array_is_as_any_job),
    I(instances_that_are_deadly_only_together_are_tried_three_times),
    I(a_death_between_slices_is_the_arrays_own),
    I(culprits_of_one_slice_cost_it_one_death_and_each_of_them_two),
    I(deaths_for_no_known_cause_are_no_instances_and_the_fourth_convicts),
    I(where_the_file_has_no_room_for_a_search_there_is_none),
    I(a_search_of_an_array_of_another_size_starts_anew),
    I(a_damaged_search_is_forgotten_when_the_file_is_opened))

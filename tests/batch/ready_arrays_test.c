/* Which slices of arrays lanes take, beside jobs of made-up signatures and times. */
#include "ready_rig.h"

/* Nothing is waited for: a test that expects too much fails. */
static struct ready_batch take_now(uint32_t lane) {
    if (ready_count(ready) == 0) return (struct ready_batch){.count = 0};
    return ready_take(ready, lane, false, taken[lane]);
}

static void assert_single(struct ready_batch batch, uint64_t signature) {
    assert_null(batch.array);
    assert_int_equal(batch.count, 1);
    assert_int_equal(taken[0][0]->plan->signature, signature);
}

/* As large as the test says, and of no bytes. */
static struct job *push_array(uint64_t signature, uint32_t instances) {
    struct job *job = job_of(signature);
    job->instances = instances;
    job->state = JOB_READY;
    job->timeout_ms = 60000;
    ready_push(ready, &job, 1);
    return job;
}

static void know_array(uint64_t signature, uint32_t count, uint64_t ns) {
    struct job *job = job_of(signature);
    job->instances = count;
    teach(job, count, true, ns);
}

static void assert_slice(
    struct ready_batch batch, const struct job *array, uint32_t first, uint32_t count) {
    assert_ptr_equal(batch.array, array);
    assert_int_equal(batch.slice.first, first);
    assert_int_equal(batch.slice.count, count);
}

static bool end(struct ready_batch batch, enum err code) {
    struct job slice;
    ready_make_slice(ready, &batch, &slice);
    slice.outcome.code = code;
    return ready_end_slice(ready, &slice);
}

TEST(free_lanes_share_the_slices_of_an_array) {
    know_array(A, 1, 100 * 1000); /* 20 of them are as long as a batch may be */
    know_array(A, 64, 10 * MS);
    struct job *array = push_array(A, 50);
    struct ready_batch batches[3];
    for (uint32_t lane = 0; lane < 3; lane++) batches[lane] = take_now(lane);
    assert_slice(batches[0], array, 0, 20);
    assert_slice(batches[1], array, 20, 20);
    assert_slice(batches[2], array, 40, 10);
    assert_false(batches[0].is_slow);
    assert_int_equal(ready_count(ready), 0);
    assert_false(end(batches[1], ERR_OK));
    assert_false(end(batches[2], ERR_OK));
    assert_true(end(batches[0], ERR_OK));
    assert_int_equal(array->outcome.code, ERR_OK);
}

TEST(of_an_array_that_is_not_known_as_many_run_first_as_run_side_by_side) {
    struct job *array = push_array(A, 500);
    struct ready_batch batch = take_now(0);
    assert_slice(batch, array, 0, MULTIPROCESSORS);
    assert_true(batch.is_slow);
    (void)end(batch, ERR_OK);
    ready_leave(ready, 0);
}

/* 300 launches of 10 us, in which the device has room for many more instances. */
static struct job *push_long_array(uint32_t instances) {
    know_array(A, MULTIPROCESSORS, 3 * MS);
    struct job *array = push_array(A, instances);
    plans[used - 1].kernel_launches = 300 * (uint64_t)instances;
    return array;
}

TEST(a_slice_of_many_short_launches_may_take_long) {
    struct job *array = push_long_array(100000);
    assert_slice(take_now(0), array, 0, 50 / 3 * MULTIPROCESSORS);
}

TEST(lanes_share_an_array_of_many_short_launches) {
    struct job *array = push_long_array(4 * 1000 - 1);
    for (uint32_t lane = 0; lane < LANES; lane++)
        assert_slice(take_now(lane), array, lane * 1000, lane < LANES - 1 ? 1000 : 999);
}

TEST(a_slice_of_many_launches_has_its_lane_to_itself_however_quick_an_instance_is) {
    struct job *array = push_long_array(1000);
    know_array(A, 1, QUICK_NS);
    teach(job_of(Q), 1, true, QUICK_NS);
    push(Q, 1);
    assert_single(take_now(0), Q);
    assert_int_equal(ready_take(ready, 0, true, taken[0]).count, 0);
    struct ready_batch batch = take_now(0);
    assert_ptr_equal(batch.array, array);
    assert_true(batch.is_slow);
}

TEST(arrays_and_single_jobs_take_turns) {
    teach(job_of(Q), 1, true, QUICK_NS);
    know_array(A, 1, MS / 2);
    know_array(A, 2, 3 * MS);
    know_array(B, 1, MS / 2);
    know_array(B, 2, 3 * MS);
    struct job *a = push_array(A, 2), *b = push_array(B, 2);
    push(Q, 1);
    assert_single(take_now(0), Q);
    assert_slice(take_now(0), a, 0, 1);
    push(Q, 1);
    assert_single(take_now(0), Q);
    assert_slice(take_now(0), b, 0, 1);
    assert_slice(take_now(0), a, 1, 1);
    assert_slice(take_now(0), b, 1, 1);
}

TEST(a_lane_with_batches_in_flight_takes_no_slow_slice_and_then_empties_for_it) {
    teach(job_of(Q), 1, true, QUICK_NS);
    know_array(A, 1, 10 * MS);
    push(Q, 1);
    assert_single(take_now(0), Q);
    struct job *array = push_array(A, 1);
    push(Q, 1);
    assert_int_equal(ready_take(ready, 0, true, taken[0]).count, 0);
    assert_slice(take_now(0), array, 0, 1);
    assert_single(ready_take(ready, 1, true, taken[0]), Q);
}

TEST(a_lane_with_batches_in_flight_takes_a_quick_slice_at_once) {
    teach(job_of(Q), 1, true, QUICK_NS);
    know_array(A, 1, QUICK_NS);
    push(Q, 1);
    assert_single(take_now(0), Q);
    struct job *array = push_array(A, 1);
    push(Q, 1);
    assert_slice(ready_take(ready, 0, true, taken[0]), array, 0, 1);
    assert_single(ready_take(ready, 0, true, taken[0]), Q);
}

/* A lane that always has a slice in flight would never be empty for others. */
TEST(quick_slices_leave_a_slow_job_its_turn) {
    know_array(A, 1, QUICK_NS);
    know_array(A, 1024, 2 * MS);
    teach(job_of(B), 1, true, 10 * MS);
    struct job *array = push_array(A, 10000);
    assert_ptr_equal(take_now(0).array, array);
    push(B, 1);
    while (ready_take(ready, 0, true, taken[0]).count > 0) continue;
    assert_single(take_now(0), B);
    assert_ptr_equal(take_now(1).array, array);
}

TEST(quick_slices_leave_a_slow_slice_its_turn) {
    know_array(A, 1, QUICK_NS);
    know_array(A, 1024, 2 * MS);
    know_array(B, 1, 10 * MS);
    struct job *quick = push_array(A, 10000), *slow = push_array(B, 1);
    assert_ptr_equal(take_now(0).array, quick);
    while (ready_take(ready, 0, true, taken[0]).count > 0) continue;
    assert_ptr_equal(take_now(0).array, slow);
    assert_ptr_equal(take_now(1).array, quick);
}

TEST(while_quick_slices_come_slow_jobs_leave_them_half_of_the_lanes) {
    know_array(A, 1, QUICK_NS);
    know_array(A, 1024, 2 * MS);
    struct job *array = push_array(A, 1000000);
    assert_ptr_equal(take_now(0).array, array);
    for (uint32_t i = 0; i < LANES; i++) {
        teach(job_of(B + i), 1, true, 10 * MS);
        push(B + i, 1);
    }
    uint32_t slow = 0;
    for (uint32_t i = 0; i < 2 * LANES; i++) {
        uint32_t lane = i < LANES ? i : 1; /* the second has a slice, which is over at once */
        slow += take_now(lane).is_slow;
    }
    assert_int_equal(slow, LANES / 2);
}

TEST(an_array_whose_slice_failed_leaves_the_queue) {
    know_array(A, 1, 100 * 1000);
    know_array(A, 64, 10 * MS);
    struct job *array = push_array(A, 50);
    struct ready_batch first = take_now(0), second = take_now(1);
    assert_int_equal(ready_count(ready), 1);
    assert_false(end(second, ERR_CANCELLED));
    assert_int_equal(ready_count(ready), 0);
    assert_true(end(first, ERR_OK));
    assert_int_equal(array->outcome.code, ERR_CANCELLED);
}

TEST(what_no_lane_took_is_popped_job_by_job) {
    know(Q, 1, QUICK_NS);
    push(Q, 2);
    push(A, 2); /* a group of slow jobs */
    struct job *array = push_array(B, 10);
    struct job *left[5];
    for (size_t i = 0; i < 5; i++) {
        left[i] = ready_pop(ready);
        assert_non_null(left[i]);
        for (size_t other = 0; other < i; other++) assert_ptr_not_equal(left[i], left[other]);
    }
    assert_ptr_equal(left[4], array);
    assert_null(ready_pop(ready));
}

#define R(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        R(free_lanes_share_the_slices_of_an_array),
        R(of_an_array_that_is_not_known_as_many_run_first_as_run_side_by_side),
        R(a_slice_of_many_short_launches_may_take_long),
        R(lanes_share_an_array_of_many_short_launches),
        R(a_slice_of_many_launches_has_its_lane_to_itself_however_quick_an_instance_is),
        R(arrays_and_single_jobs_take_turns),
        R(a_lane_with_batches_in_flight_takes_no_slow_slice_and_then_empties_for_it),
        R(a_lane_with_batches_in_flight_takes_a_quick_slice_at_once),
        R(quick_slices_leave_a_slow_job_its_turn),
        R(quick_slices_leave_a_slow_slice_its_turn),
        R(while_quick_slices_come_slow_jobs_leave_them_half_of_the_lanes),
        R(an_array_whose_slice_failed_leaves_the_queue),
        R(what_no_lane_took_is_popped_job_by_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who shares a batch, with jobs of made-up signatures and times. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ready_rig.h"
#include "support/state_rig.h"

static int set_up_one_lane(void **state) {
    return set_up_lanes(1);
}

static void finish(uint32_t lane, struct ready_batch batch, uint64_t ns) {
    ready_learn(ready, lane, taken[lane], batch.count, true, ns);
    if (batch.is_slow) ready_leave(ready, lane);
}

TEST(quick_jobs_of_an_uneven_kernel_are_few_and_may_take_all_their_time) {
    static const uint32_t timeout_ms = 500;
    static struct job_step step;
    struct state_rig *rig;
    struct error err;
    const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 4};
    step = (struct job_step){.program = slice_of_text("p"), .entry = slice_of_text("train")};
    (void)state_rig_set_up((void **)&rig);
    assert_int_equal(state_begin(rig->state, &shape, 0, "", &err), ERR_OK);
    assert_true(state_note_uneven(rig->state, step.program, step.entry));
    for (int is_known = 0; is_known < 2; is_known++) {
        assert_int_equal(set_up_lanes_with(LANES, is_known ? rig->state : NULL), 0);
        know(Q, 1, QUICK_NS);
        know(Q, 32, 32 * QUICK_NS);
        for (int i = 0; i < 20; i++) {
            struct job *job = job_of(Q);
            job->steps = &step;
            job->step_count = 1;
            job->timeout_ms = timeout_ms;
            ready_push(ready, &job, 1);
        }
        struct ready_batch batch = take(0);
        assert_batch(batch, 0, Q, is_known ? COMPOSITION_UNEVEN_MAX : 20, is_known);
        uint64_t more = is_known ? (COMPOSITION_UNEVEN_MAX - 1) * timeout_ms * MS : 0;
        assert_int_equal(batch.span_ns, 2 * MS + more);
        (void)tear_down(NULL);
    }
    (void)state_rig_tear_down((void **)&rig);
}

TEST(of_an_unknown_signature_one_job_runs_and_the_others_wait_for_what_it_teaches) {
    push(A, 10);
    push(B, 10);
    struct ready_batch a = take(0), b = take(1);
    assert_batch(a, 0, A, 1, true);
    assert_batch(b, 1, B, 1, true);
    finish(0, a, SLOW_NS);
    assert_batch(take(0), 0, A, 9, true);
}

TEST(of_a_known_signature_nobody_waits_for_the_first) {
    know(A, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    push(A, MULTIPROCESSORS + 1);
    assert_batch(take(0), 0, A, MULTIPROCESSORS, true);
    push(Q, 1);
    assert_batch(take(1), 1, Q, 1, false);
    push(Q, 1);
    assert_int_equal(ready_take(ready, 1, true, taken[1]).count, 0); /* it empties for the rest */
}

TEST(slow_jobs_of_one_signature_gather_and_a_free_lane_takes_as_many_as_are_allowed) {
    know(A, 1, SLOW_NS);
    push(A, 300);
    assert_batch(take(0), 0, A, MULTIPROCESSORS, true);
    assert_batch(take(1), 1, A, MULTIPROCESSORS, true);
    assert_batch(take(2), 2, A, 300 - 2 * MULTIPROCESSORS, true);
}

TEST(slow_jobs_that_came_one_after_another_while_lanes_were_busy_run_together) {
    know(A, 1, SLOW_NS);
    struct ready_batch batches[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) {
        push(A, 1);
        batches[lane] = take(lane);
        assert_batch(batches[lane], lane, A, 1, true);
    }
    for (int i = 0; i < 100; i++) push(A, 1);
    finish(2, batches[2], SLOW_NS);
    assert_batch(take(2), 2, A, 100, true);
}

TEST(thousands_of_slow_jobs_need_few_launches) {
    size_t launches = 0;
    for (size_t done = 0; done < 4000; launches++) {
        if (ready_count(ready) == 0) push(A, 500);
        struct ready_batch batch = take(0);
        finish(0, batch, SLOW_NS);
        done += batch.count;
    }
    assert_in_range(launches, 1, 30);
}

TEST(jobs_that_fill_the_device_run_alone_but_for_a_try) {
    push(B, 200);
    size_t largest = 0, alone = 0;
    for (size_t done = 0; done < 200;) {
        struct ready_batch batch = take(0);
        finish(0, batch, SLOW_NS * batch.count);
        if (done > 0 && batch.count > largest) largest = batch.count;
        alone += batch.count == 1;
        done += batch.count;
    }
    assert_true(alone > 50);
    assert_true(largest <= MULTIPROCESSORS);
}

TEST(while_quick_jobs_come_slow_ones_leave_them_half_of_the_lanes) {
    know(Q, 1, QUICK_NS);
    for (uint64_t signature = A; signature < A + 10; signature++) {
        know(signature, 1, SLOW_NS);
        push(signature, 1);
    }
    push(Q, 1);
    size_t slow = 0;
    for (uint32_t lane = 0; lane < 3; lane++) slow += take(lane).is_slow;
    assert_int_equal(slow, 2);
    push(Q, 5);
    assert_batch(take(3), 3, Q, 5, false);
}

/* The third lane waits until then. */
TEST(once_no_quick_job_has_come_for_a_while_slow_ones_have_all_lanes) {
    know(Q, 1, QUICK_NS);
    push(Q, 1);
    assert_batch(take(0), 0, Q, 1, false);
    for (uint64_t signature = A; signature < A + LANES; signature++) {
        know(signature, 1, SLOW_NS);
        push(signature, 1);
    }
    for (uint32_t lane = 0; lane < LANES; lane++) assert_true(take(lane).is_slow);
}

TEST(without_quick_jobs_slow_ones_have_all_lanes) {
    for (uint64_t signature = A; signature < A + LANES; signature++) {
        know(signature, 1, SLOW_NS);
        push(signature, 1);
    }
    for (uint32_t lane = 0; lane < LANES; lane++) assert_true(take(lane).is_slow);
}

/* Lane 0 has a slow batch of A; what else waits is of `signature`. */
static void assert_takes_more_beside(uint64_t signature, size_t expected) {
    struct ready_batch first = take(0);
    assert_true(first.is_slow);
    push(signature, 1);
    push(A, 3);
    assert_int_equal(ready_take(ready, 0, true, taken[0]).count, expected);
    ready_leave(ready, 0);
}

TEST(a_lane_with_a_slow_batch_takes_more_of_its_kind) {
    know(A, 1, 5 * MS);
    push(A, MULTIPROCESSORS);
    assert_takes_more_beside(A, 4);
    assert_int_equal(ready_count(ready), 0);
}

TEST(a_lane_with_a_slow_batch_takes_no_more_where_it_is_the_turn_of_others) {
    know(A, 1, 5 * MS);
    know(B, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    push(A, MULTIPROCESSORS);
    assert_takes_more_beside(B, 0);
    assert_batch(take(1), 1, B, 1, true);
    assert_takes_more_beside(Q, 0);
    assert_batch(take(2), 2, Q, 1, false);
}

/* Another lane may be free before. */
TEST(a_batch_that_takes_long_does_not_wait_in_a_lane_for_another) {
    know(A, 1, 11 * MS);
    push(A, MULTIPROCESSORS);
    assert_takes_more_beside(A, 0);
}

TEST(a_single_lane_alternates_between_quick_and_slow_jobs) {
    know(Q, 1, QUICK_NS);
    know(A, 1, SLOW_NS);
    know(B, 1, SLOW_NS);
    push(A, 1);
    push(B, 1);
    push(Q, 1);
    bool was_slow = false;
    for (int i = 0; i < 4; i++) {
        struct ready_batch batch = take(0);
        if (i > 0) assert_true(batch.is_slow != was_slow);
        was_slow = batch.is_slow;
        finish(0, batch, batch.is_slow ? SLOW_NS : QUICK_NS);
        push(batch.is_slow ? A : Q, 1);
    }
}

TEST(a_lane_with_batches_in_flight_takes_no_slow_job_and_then_empties_for_it) {
    know(Q, 1, QUICK_NS);
    know(A, 1, SLOW_NS);
    push(Q, 1);
    assert_batch(take(0), 0, Q, 1, false);
    push(A, 1);
    push(Q, 1);
    assert_int_equal(ready_take(ready, 0, true, taken[0]).count, 0);
    assert_batch(take(0), 0, A, 1, true);
    assert_batch(take(1), 1, Q, 1, false);
}

TEST(signatures_take_turns) {
    know(A, 1, SLOW_NS);
    know(B, 1, SLOW_NS);
    push(A, 200);
    push(B, 1);
    assert_batch(take(0), 0, A, MULTIPROCESSORS, true);
    assert_batch(take(1), 1, B, 1, true);
    assert_batch(take(2), 2, A, 200 - MULTIPROCESSORS, true);
}

TEST(jobs_that_turn_out_to_be_quick_leave_their_group) {
    push(A, 10);
    finish(0, take(0), QUICK_NS);
    assert_batch(take(0), 0, A, 9, false);
}

TEST(jobs_that_turn_out_to_be_quick_wait_for_none_of_the_groups_before_theirs) {
    for (uint64_t other = 1000; other < 2000; other++) push(other, 1);
    push(A, 10);
    know(A, 1, QUICK_NS);
    assert_batch(take(0), 0, A, 10, false);
}

TEST(jobs_that_turn_out_to_be_slow_leave_the_queue) {
    know(A, 1, QUICK_NS);
    push(A, 3);
    for (int i = 0; i < 100; i++) know(A, 1, SLOW_NS);
    push(A, 3);
    assert_batch(take(0), 0, A, 6, true);
}

TEST(quick_jobs_of_several_signatures_share_a_batch_while_their_times_fit_the_span) {
    know(A, 1, 300000);
    know(B, 1, 500000);
    push(A, 2);
    push(B, 1);
    push(A, 1);
    push(B, 1);
    push(A, 1);
    push(B, 1);
    struct ready_batch batch = take(0);
    assert_int_equal(batch.count, 5); /* 0.6 + 0.5 + 0.3 + 0.5 ms; 0.3 more would not fit 2 ms */
    assert_false(batch.is_slow);
    assert_int_equal(take(1).count, 2);
}

TEST(jobs_that_take_half_the_span_gather_where_they_run_side_by_side) {
    know(A, 1, MS);
    push(A, 2 * MULTIPROCESSORS);
    assert_batch(take(0), 0, A, MULTIPROCESSORS, true);
}

TEST(quick_jobs_of_several_signatures_learn_their_parts_of_a_batch) {
    know(A, 1, MS / 4);
    know(B, 1, MS / 2);
    for (int i = 0; i < 40; i++) { /* together they take a tenth of what they took alone */
        push(A, 1);
        push(B, 1);
        struct ready_batch batch = take(0);
        assert_int_equal(batch.count, 2);
        finish(0, batch, 75000);
    }
    for (int i = 0; i < 8; i++) {
        push(A, 1);
        push(B, 1);
    }
    assert_int_equal(take(0).count, 16);
}

TEST(lanes_share_what_waits_of_quick_jobs) {
    know(Q, 1, 1000);
    push(Q, 400);
    for (uint32_t lane = 0; lane < LANES; lane++) assert_in_range(take(lane).count, 64, 100);
    push(Q, 2000);
    assert_batch(take(0), 0, Q, 256, false);
}

TEST(a_job_that_failed_before_runs_alone) {
    know(A, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    push(A, 5);
    push(Q, 5);
    struct job *again[] = {job_of(A), job_of(Q)};
    jobs[used - 1].retry_count = jobs[used - 2].retry_count = 1;
    ready_push(ready, again, 2);
    size_t alone = 0;
    for (size_t done = 0; done < 12;) {
        struct ready_batch batch = take(0);
        done += batch.count;
        if (taken[0][0]->retry_count > 0) {
            assert_int_equal(batch.count, 1);
            alone++;
        } else {
            assert_int_equal(batch.count, 5);
        }
        finish(0, batch, SLOW_NS);
    }
    assert_int_equal(alone, 2);
}

TEST(tenants_never_share_a_batch) {
    know(A, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    for (int i = 0; i < 10; i++) {
        struct job *both[] = {job_of(A), job_of(Q)};
        both[0]->tenant = both[1]->tenant = slice_of_text(i % 2 == 0 ? "one" : "other");
        ready_push(ready, both, 2);
    }
    for (size_t done = 0; done < 20;) {
        struct ready_batch batch = take(0);
        assert_int_equal(batch.count, 5);
        for (size_t i = 1; i < batch.count; i++)
            assert_true(slice_equal(taken[0][0]->tenant, taken[0][i]->tenant));
        finish(0, batch, batch.is_slow ? SLOW_NS : QUICK_NS);
        done += batch.count;
    }
}

TEST(the_bytes_of_a_batch_fit_the_slab_and_a_larger_job_runs_alone) {
    static const uint64_t signatures[] = {A, Q};
    know(A, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 4; i++) {
            struct job *job = job_of(signatures[kind]);
            plans[used - 1].group_bytes[GROUP_INPUT] = i == 0 ? 2 * SLAB : SLAB / 3;
            ready_push(ready, &job, 1);
        }
        static const size_t counts[] = {1, 2, 1};
        for (int i = 0; i < 3; i++) {
            struct ready_batch batch = take(0);
            assert_int_equal(batch.count, counts[i]);
            finish(0, batch, kind == 0 ? SLOW_NS : QUICK_NS);
        }
    }
}

TEST(jobs_that_fill_the_slab_to_its_last_byte_share_a_batch) {
    static const uint64_t signatures[] = {A, Q};
    know(A, 1, SLOW_NS);
    know(Q, 1, QUICK_NS);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 2; i++) {
            struct job *job = job_of(signatures[kind]);
            plans[used - 1].group_bytes[GROUP_INPUT] = SLAB / 2 - PLAN_ALIGNMENT;
            ready_push(ready, &job, 1);
        }
        assert_batch(take(0), 0, signatures[kind], 2, kind == 0);
        if (kind == 0) ready_leave(ready, 0);
    }
}

TEST(timed_jobs_are_learned_from_by_themselves) {
    struct job *timed = job_of(A);
    timed->timing = true;
    assert_false(composition_same_signature(timed, job_of(A)));
    know(A, 1, QUICK_NS);
    ready_push(ready, &timed, 1);
    assert_true(take(0).is_slow);
}

TEST(a_batch_of_slow_jobs_may_take_what_it_is_expected_to) {
    know(A, 1, SLOW_NS);
    know(A, 2, SLOW_NS + SLOW_NS / 5);
    know(A, 4, 3 * SLOW_NS);
    push(A, 2);
    struct ready_batch batch = take(0);
    assert_int_equal(batch.count, 2);
    assert_int_equal(batch.span_ns, SLOW_NS + SLOW_NS / 5);
    know(Q, 1, QUICK_NS);
    push(Q, 2);
    assert_int_equal(take(1).span_ns, 2 * MS);
}

TEST(a_quick_batch_beside_slow_ones_stays_quick) {
    know(A, 1, SLOW_NS);
    know(Q, 1, 400000);
    push(A, 2 * MULTIPROCESSORS);
    assert_true(take(0).is_slow);
    assert_true(take(1).is_slow);
    for (int i = 0; i < 50; i++) {
        push(Q, 1);
        struct ready_batch batch = take(2);
        assert_batch(batch, 2, Q, 1, false);
        finish(2, batch, MS); /* three of them share the device */
    }
}

TEST(a_failure_teaches_only_until_something_went_well) {
    teach(job_of(A), 1, false, QUICK_NS);
    push(A, 2);
    struct ready_batch batch = take(0);
    assert_batch(batch, 0, A, 2, false); /* better than nothing */
    finish(0, batch, SLOW_NS);
    teach(job_of(A), 1, false, QUICK_NS);
    push(A, 1);
    assert_true(take(0).is_slow);
}

TEST(a_closed_queue_gives_what_it_has_and_then_nothing) {
    know(A, 1, SLOW_NS);
    push(A, 2);
    ready_close(ready);
    assert_batch(take(0), 0, A, 2, true);
    assert_int_equal(take(1).count, 0);
}

/* Four lanes and four threads that push; the least is asked: each job comes out once. */
enum { EACH = 900 };
static atomic_uint cells[JOBS_MAX];
static atomic_uint next_pusher, next_lane;

static void *push_many(void *context) {
    size_t first = EACH * atomic_fetch_add(&next_pusher, 1);
    for (size_t i = first; i < first + EACH; i++) {
        struct job *job = &jobs[i];
        ready_push(ready, &job, 1);
    }
    return NULL;
}

static void *take_many(void *context) {
    uint32_t lane = atomic_fetch_add(&next_lane, 1);
    struct ready_batch batch;
    while ((batch = take(lane)).count > 0) {
        for (size_t i = 0; i < batch.count; i++) atomic_fetch_add(&cells[taken[lane][i] - jobs], 1);
        finish(lane, batch, taken[lane][0]->plan->signature % 2 == 0 ? SLOW_NS : QUICK_NS);
    }
    return NULL;
}

TEST(many_threads_get_every_job_exactly_once) {
    enum { THREADS = 4 };
    pthread_t pushers[THREADS], lanes[LANES];
    for (size_t i = 0; i < THREADS * EACH; i++) (void)job_of(100 + i % 37);
    for (size_t i = 0; i < LANES; i++)
        assert_int_equal(pthread_create(&lanes[i], NULL, take_many, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&pushers[i], NULL, push_many, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) pthread_join(pushers[i], NULL);
    ready_close(ready);
    for (size_t i = 0; i < LANES; i++) pthread_join(lanes[i], NULL);
    for (size_t i = 0; i < THREADS * EACH; i++) assert_int_equal(atomic_load(&cells[i]), 1);
    assert_int_equal(ready_count(ready), 0);
}

#define R(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static struct long_job long_jobs[5];

static struct job *push_long(size_t index) {
    struct job *job = job_of(A);
    long_jobs[index] = (struct long_job){.rounds = 0};
    job->long_job = &long_jobs[index];
    job->state = JOB_READY;
    ready_push(ready, &job, 1);
    return job;
}

static void run_chunk(uint32_t lane, struct job *expected, bool is_last) {
    struct ready_batch batch = ready_take(ready, lane, false, taken[lane]);
    assert_int_equal(batch.count, 1);
    assert_true(batch.is_slow);
    assert_ptr_equal(taken[lane][0], expected);
    ready_leave(ready, lane);
    expected->state = JOB_ON_DEVICE;
    if (is_last) ready_end_long(ready, expected);
    else ready_put_back(ready, expected);
}

TEST(long_jobs_take_turns_and_no_more_begin_than_may_run_at_a_time) {
    struct job *job[4];
    for (size_t i = 0; i < 4; i++) job[i] = push_long(i);
    assert_int_equal(ready_long_count(ready), LONG_JOBS);
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < LONG_JOBS; i++) run_chunk(0, job[i], false);
    run_chunk(0, job[0], true);
    run_chunk(0, job[1], false);
    run_chunk(0, job[2], false); /* it has the first one's place */
    run_chunk(0, job[1], true);
    run_chunk(0, job[2], true);
    run_chunk(0, job[3], true);
    assert_int_equal(ready_long_count(ready), 0);
}

TEST(long_jobs_that_are_parked_stay_and_others_go_on) {
    struct job *job[2];
    know(Q, 1, QUICK_NS);
    for (size_t i = 0; i < 2; i++) job[i] = push_long(i);
    assert_int_equal(ready_park_long(ready, true), 2);
    push(Q, 1);
    struct ready_batch quick = take(0);
    assert_batch(quick, 0, Q, 1, false);
    assert_int_equal(ready_take(ready, 1, true, taken[1]).count, 0);
    assert_int_equal(ready_park_long(ready, false), 2);
    run_chunk(1, job[0], false);
    run_chunk(1, job[1], true);
    assert_int_equal(ready_park_long(ready, true), 1);
    ready_close(ready); /* which frees them */
    run_chunk(1, job[0], true);
    assert_int_equal(ready_park_long(ready, true), 0);
}

TEST(a_queue_that_is_closed_ends_once_those_that_wait_for_a_place_have_run) {
    struct job *job[3];
    for (size_t i = 0; i < 3; i++) job[i] = push_long(i);
    ready_close(ready);
    run_chunk(0, job[0], false);
    run_chunk(0, job[1], true);
    run_chunk(0, job[0], true);
    run_chunk(0, job[2], true);
    assert_int_equal(ready_take(ready, 0, false, taken[0]).count, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        R(of_an_unknown_signature_one_job_runs_and_the_others_wait_for_what_it_teaches),
        R(of_a_known_signature_nobody_waits_for_the_first),
        R(slow_jobs_of_one_signature_gather_and_a_free_lane_takes_as_many_as_are_allowed),
        R(slow_jobs_that_came_one_after_another_while_lanes_were_busy_run_together),
        R(thousands_of_slow_jobs_need_few_launches),
        R(jobs_that_fill_the_device_run_alone_but_for_a_try),
        R(while_quick_jobs_come_slow_ones_leave_them_half_of_the_lanes),
        R(once_no_quick_job_has_come_for_a_while_slow_ones_have_all_lanes),
        R(without_quick_jobs_slow_ones_have_all_lanes),
        R(a_lane_with_a_slow_batch_takes_more_of_its_kind),
        R(a_lane_with_a_slow_batch_takes_no_more_where_it_is_the_turn_of_others),
        R(a_batch_that_takes_long_does_not_wait_in_a_lane_for_another),
        cmocka_unit_test_setup_teardown(
            a_single_lane_alternates_between_quick_and_slow_jobs, set_up_one_lane, tear_down),
        R(a_lane_with_batches_in_flight_takes_no_slow_job_and_then_empties_for_it),
        R(signatures_take_turns),
        R(jobs_that_turn_out_to_be_quick_leave_their_group),
        R(jobs_that_turn_out_to_be_quick_wait_for_none_of_the_groups_before_theirs),
        R(jobs_that_turn_out_to_be_slow_leave_the_queue),
        R(quick_jobs_of_several_signatures_share_a_batch_while_their_times_fit_the_span),
        R(jobs_that_take_half_the_span_gather_where_they_run_side_by_side),
        R(quick_jobs_of_several_signatures_learn_their_parts_of_a_batch),
        R(lanes_share_what_waits_of_quick_jobs),
        R(a_job_that_failed_before_runs_alone),
        R(tenants_never_share_a_batch),
        R(the_bytes_of_a_batch_fit_the_slab_and_a_larger_job_runs_alone),
        R(jobs_that_fill_the_slab_to_its_last_byte_share_a_batch),
        R(timed_jobs_are_learned_from_by_themselves),
        R(a_batch_of_slow_jobs_may_take_what_it_is_expected_to),
        R(a_quick_batch_beside_slow_ones_stays_quick),
        R(a_failure_teaches_only_until_something_went_well),
        R(long_jobs_take_turns_and_no_more_begin_than_may_run_at_a_time),
        R(long_jobs_that_are_parked_stay_and_others_go_on),
        R(a_queue_that_is_closed_ends_once_those_that_wait_for_a_place_have_run),
        R(a_closed_queue_gives_what_it_has_and_then_nothing),
        R(many_threads_get_every_job_exactly_once),
        cmocka_unit_test(quick_jobs_of_an_uneven_kernel_are_few_and_may_take_all_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

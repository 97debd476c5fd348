/* Proves: how many rounds a visit to the device has, and when a long job ends, by times and flags
 * that the test chooses. */
#include "batch/chunk.h"

#include <stdio.h>

#include "planned.h"

enum { MS = 1000000 };

static struct job *job;
static struct long_job *long_job;
static struct error err;

static void make(const char *more) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: long\nbuffers: {state: {bytes: 8%s}, done: {bytes: 4%s}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {u32: 0}], grid: [1]}]\n"
        "outputs: []\nuntil: {buffer: done}\n%s",
        strstr(more, "count") != NULL ? ", each: true" : "",
        strstr(more, "count") != NULL ? ", each: true" : "", more);
    job = planned_add(yaml)->job;
    long_job = job->long_job;
}

static uint64_t now_ns;

static void begin(uint64_t now_ms) {
    now_ns = now_ms * MS;
    assert_int_equal(chunk_begin(job, now_ns, &err), ERR_OK);
}

/* With flags of up to eight instances, and so long for each round. */
static void end(const uint32_t *flags, uint64_t round_us) {
    uint64_t ns = long_job->chunk * round_us * 1000;
    chunk_launched(long_job, 0);
    chunk_end(job, (const uint8_t *)flags, sizeof *flags, now_ns + ns, ns);
}

static const uint32_t nobody[8];

TEST(the_first_chunk_is_one_round) {
    make("repeat: 1000000\n");
    begin(5);
    assert_int_equal(long_job->chunk, 1);
    assert_int_equal(chunk_allowance_ns(long_job), 0);
}

TEST(a_chunk_takes_an_eighth_of_the_time_that_the_job_has_had_and_no_more_than_a_bound) {
    make("repeat: 1000000\n");
    begin(0);
    end(nobody, 100);
    begin(2);
    assert_in_range(long_job->chunk, 9, 10); /* CHUNK_MS_MIN */
    end(nobody, 100);
    begin(80);
    assert_in_range(long_job->chunk, 99, 100);
    assert_in_range(chunk_allowance_ns(long_job), 4 * 9 * MS, 4 * 11 * MS);
    end(nobody, 100);
    begin(100000);
    assert_in_range(long_job->chunk, 999, 1000); /* CHUNK_MS_MAX */
}

TEST(a_round_that_takes_longer_than_a_chunk_may_is_run_all_the_same) {
    make("repeat: 1000000\n");
    begin(0);
    end(nobody, 5000000);
    begin(5000);
    assert_int_equal(long_job->chunk, 1);
}

TEST(no_chunk_goes_beyond_the_rounds_or_the_time_that_are_left) {
    make("repeat: 20\n");
    begin(0);
    end(nobody, 1);
    begin(1000);
    assert_int_equal(long_job->chunk, 19);
    make("repeat: 1000000\ntime_ms: 1000\n");
    begin(0);
    end(nobody, 1000);
    begin(990);
    assert_in_range(long_job->chunk, 9, 10);
}

static void assert_ended(uint32_t instance, uint32_t rounds, enum long_end how) {
    assert_int_equal(long_job->rounds_of[instance], rounds);
    assert_int_equal(long_job->ends[instance], how);
}

TEST(instances_that_are_done_leave_the_others) {
    const uint32_t flags[] = {0, 1, 0}, later[] = {0, 1, 2};
    make("count: 3\nrepeat: 2\n");
    begin(0);
    end(flags, 1);
    assert_int_equal(long_job->live_count, 2);
    assert_int_equal(long_job->live[0], 0);
    assert_int_equal(long_job->live[1], 2);
    begin(1);
    end(later, 1);
    assert_int_equal(long_job->live_count, 1);
    begin(2);
    assert_int_equal(long_job->chunk, 0); /* its rounds are over: it reads its outputs */
    assert_ended(0, 2, LONG_END_REPEAT);
    assert_ended(1, 1, LONG_END_UNTIL);
    assert_ended(2, 2, LONG_END_UNTIL);
    assert_int_equal(long_job->instance_rounds, 3 + 2);
}

TEST(a_flag_that_names_a_round_that_has_not_run_is_taken_for_the_last_one) {
    const uint32_t flag = 4000000000u;
    make("repeat: 1000\n");
    begin(0);
    end(&flag, 1);
    begin(1);
    assert_ended(0, 1, LONG_END_UNTIL);
}

TEST(a_job_ends_with_its_time_or_once_it_is_to_stop_but_not_before_its_first_round) {
    make("repeat: 1000\ntime_ms: 10\n");
    begin(0);
    end(nobody, 1);
    begin(10);
    assert_int_equal(long_job->chunk, 0);
    assert_ended(0, 1, LONG_END_TIME);
    make("repeat: 1000\n");
    long_job->is_stopped = true;
    begin(0);
    assert_int_equal(long_job->chunk, 1);
    end(nobody, 1);
    begin(1);
    assert_int_equal(long_job->chunk, 0);
    assert_ended(0, 1, LONG_END_STOP);
}

TEST(it_shows_itself_with_the_chunk_at_whose_end_that_is_due) {
    make("repeat: 1000000\nprogress: {every_ms: 100}\n");
    begin(0);
    assert_false(long_job->is_shown);
    end(nobody, 1000);
    begin(99);
    assert_true(long_job->is_shown); /* the chunk takes 12 ms */
    end(nobody, 1000);
    begin(111);
    assert_false(long_job->is_shown);
    end(nobody, 1000);
    begin(205);
    assert_true(long_job->is_shown);
}

TEST(a_visit_that_was_not_begun_counts_for_nothing) {
    make("repeat: 1000000\nprogress: {every_ms: 100}\n");
    begin(0);
    end(nobody, 1000);
    for (int i = 0; i < 3; i++) begin(99);
    assert_true(long_job->is_shown);
    assert_int_equal(long_job->instance_rounds, 1);
    end(nobody, 1000);
    assert_int_equal(long_job->instance_rounds, 1 + long_job->chunk);
}

TEST(a_job_that_is_reset_starts_from_its_first_round) {
    const uint32_t flags[] = {1, 0};
    make("count: 2\nrepeat: 1000\n");
    begin(0);
    end(flags, 1000);
    chunk_reset(long_job);
    begin(50);
    assert_int_equal(long_job->live_count, 2);
    assert_int_equal(long_job->chunk, 1);
    assert_int_equal(long_job->rounds, 0);
    assert_ended(0, 0, LONG_END_NONE);
}

RUN_TESTS(PLANNED(the_first_chunk_is_one_round),
    PLANNED(a_chunk_takes_an_eighth_of_the_time_that_the_job_has_had_and_no_more_than_a_bound),
    PLANNED(a_round_that_takes_longer_than_a_chunk_may_is_run_all_the_same),
    PLANNED(no_chunk_goes_beyond_the_rounds_or_the_time_that_are_left),
    PLANNED(instances_that_are_done_leave_the_others),
    PLANNED(a_flag_that_names_a_round_that_has_not_run_is_taken_for_the_last_one),
    PLANNED(a_job_ends_with_its_time_or_once_it_is_to_stop_but_not_before_its_first_round),
    PLANNED(it_shows_itself_with_the_chunk_at_whose_end_that_is_due),
    PLANNED(a_visit_that_was_not_begun_counts_for_nothing),
    PLANNED(a_job_that_is_reset_starts_from_its_first_round))

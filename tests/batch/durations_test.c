#include "batch/durations.h"

#include <string.h>

#include "testing.h"

static const uint64_t MS = 1000000, SPAN_NS = 2000000;

static struct durations durations;

static int set_up(void **state) {
    memset(&durations, 0, sizeof durations);
    return 0;
}

/* Batches as a lane takes them, each of as many jobs as are allowed, `rounds` times; `time_of` says
 * how long they take. Returns how many are allowed after that. */
static uint32_t run(uint64_t (*time_of)(uint32_t count), uint32_t at_once, int rounds) {
    for (int i = 0; i < rounds; i++) {
        uint32_t count = durations_allow(&durations, 7, SPAN_NS, at_once);
        durations_learn(&durations, 7, count, time_of(count), 0);
    }
    return durations_allow(&durations, 7, SPAN_NS, at_once);
}

/* A block each, on a device with room for 256 of them. */
static uint64_t one_block(uint32_t count) {
    return 40 * MS * ((count + 255) / 256);
}

static uint64_t whole_device(uint32_t count) {
    return 40 * MS * count;
}

/* Quick ones cost their launch above all. */
static uint64_t quick(uint32_t count) {
    return 20000 + 100 * count;
}

/* Up to eight share a block, which takes 2.5 times as long as one job alone; there is room for 256
 * blocks. */
static uint64_t eight_a_block(uint32_t count) {
    return count == 1 ? 900000 : 2300000ull * ((count + 2047) / 2048);
}

TEST(a_signature_is_unknown_until_it_was_seen_and_starts_with_one_job) {
    assert_int_equal(durations_expect(&durations, 7, 1), DURATIONS_UNKNOWN);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 132), 1);
    durations_learn(&durations, 7, 1, 1000, 0);
    assert_int_equal(durations_expect(&durations, 7, 1), 1000);
    assert_int_equal(durations_expect(&durations, 8, 1), DURATIONS_UNKNOWN);
}

TEST(a_time_of_zero_is_known_all_the_same) {
    durations_learn(&durations, 7, 1, 0, 0);
    assert_int_not_equal(durations_expect(&durations, 7, 1), DURATIONS_UNKNOWN);
    assert_int_not_equal(durations_expect(&durations, 7, 1024), DURATIONS_UNKNOWN);
    assert_in_range(durations_allow(&durations, 7, SPAN_NS, 1), 2, 65536);
}

TEST(slow_jobs_that_take_as_long_together_as_one_double_until_they_do_not) {
    for (uint32_t count = 1; count <= 256; count *= 2) {
        assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), count);
        durations_learn(&durations, 7, count, one_block(count), 0);
    }
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 512); /* to try */
    durations_learn(&durations, 7, 512, one_block(512), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 256);
}

TEST(what_the_device_has_room_for_side_by_side_is_tried_at_once) {
    durations_learn(&durations, 7, 1, one_block(1), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 128);
    durations_learn(&durations, 7, 128, one_block(128), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 256);
}

TEST(a_guess_that_was_wrong_is_followed_by_single_steps) {
    durations_learn(&durations, 7, 1, whole_device(1), 0);
    durations_learn(&durations, 7, 128, whole_device(128), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 2);
    durations_learn(&durations, 7, 2, whole_device(2), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 1);
}

TEST(slow_jobs_that_fill_the_device_run_alone_again_after_one_try) {
    assert_int_equal(run(whole_device, 1, 2), 1);
    set_up(NULL);
    assert_int_equal(run(whole_device, 132, 9), 1); /* however wrong the guess was */
}

TEST(jobs_that_are_cheaper_together_share_a_batch_that_takes_longer_than_one) {
    assert_int_equal(run(eight_a_block, 132, 20), 2048);
}

TEST(each_doubling_of_a_batch_that_takes_longer_makes_a_job_a_fifth_cheaper) {
    durations_learn(&durations, 7, 1, 4 * MS, 0);
    durations_learn(&durations, 7, 4, 4 * MS * 16 / 10 * 16 / 10, 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 8);
    set_up(NULL);
    durations_learn(&durations, 7, 1, 4 * MS, 0);
    durations_learn(&durations, 7, 4, 4 * MS * 16 / 10 * 16 / 10 + 1000, 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 2);
}

TEST(a_few_that_do_not_pay_together_do_not_stand_in_the_way_of_many_that_do) {
    durations_learn(&durations, 7, 1, eight_a_block(1), 0);
    durations_learn(&durations, 7, 2, eight_a_block(2), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 1);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 132), 132);
    durations_learn(&durations, 7, 132, eight_a_block(132), 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 132), 256);
}

TEST(no_batch_takes_over_four_times_as_long_as_one_however_cheap_its_jobs_are) {
    durations_learn(&durations, 7, 1, 4 * MS, 0);
    durations_learn(&durations, 7, 128, 17 * MS, 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 2);
    set_up(NULL);
    durations_learn(&durations, 7, 1, 4 * MS, 0);
    durations_learn(&durations, 7, 128, 16 * MS, 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 128), 256);
}

TEST(a_count_that_took_too_long_is_tried_again_from_time_to_time) {
    assert_int_equal(run(whole_device, 1, 40), 1);
    assert_int_equal(run(one_block, 1, 300), 256); /* they have become others */
}

TEST(a_count_that_has_become_too_slow_is_left) {
    assert_int_equal(run(one_block, 1, 20), 256);
    assert_int_equal(run(whole_device, 1, 120), 1);
}

/* A device with room for all, on which no two batches take as long. */
TEST(times_that_vary_do_not_part_what_runs_together_as_quickly) {
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        uint32_t count = durations_allow(&durations, 7, SPAN_NS, 1);
        if (i > 20) assert_in_range(count, 32768, 65536);
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t ns = 32 * MS + (random >> 33) % (16 * MS); /* 40 ms, 20 % less or more */
        durations_learn(&durations, 7, count, ns, 0);
    }
}

TEST(quick_jobs_fill_the_span_at_once) {
    durations_learn(&durations, 7, 1, 20000, 0);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 100);
    assert_int_equal(run(quick, 1, 20), 16384);
}

TEST(an_unknown_count_is_expected_to_take_what_fewer_take_in_proportion) {
    durations_learn(&durations, 7, 1, 1000, 0);
    assert_int_equal(durations_expect(&durations, 7, 8), 8000);
    durations_learn(&durations, 7, 4, 1600, 0);
    assert_int_equal(durations_expect(&durations, 7, 8), 3200);
    durations_learn(&durations, 7, 64, 2000, 0);
    assert_int_equal(durations_expect(&durations, 7, 8), 2000); /* no more than more of them take */
}

TEST(fewer_jobs_take_no_longer_than_more) {
    durations_learn(&durations, 7, 1, 3 * MS, 0); /* the first one, cold */
    durations_learn(&durations, 7, 2, 50000, 0);
    assert_in_range(
        durations_expect(&durations, 7, 1), 50000, 62500); /* but for what times vary by */
}

TEST(a_spike_moves_the_average_a_little_and_a_change_is_followed) {
    durations_learn(&durations, 7, 1, 1000, 0);
    durations_learn(&durations, 7, 1, 90000, 0);
    assert_int_equal(durations_expect(&durations, 7, 1), 1125);
    for (int i = 0; i < 200; i++) durations_learn(&durations, 7, 1, 9000, 0);
    assert_in_range(durations_expect(&durations, 7, 1), 8900, 9000);
    for (int i = 0; i < 200; i++) durations_learn(&durations, 7, 1, 100, 0);
    assert_in_range(durations_expect(&durations, 7, 1), 100, 200);
}

/* Seven lanes with the same slow jobs: what each measures is its own time and a part of theirs. */
TEST(what_a_batch_took_beside_others_does_not_make_it_slow) {
    durations_learn(&durations, 7, 1, 40 * MS, 0);
    durations_learn(&durations, 7, 128, 160 * MS, 6);
    assert_int_equal(durations_expect(&durations, 7, 128), 40 * MS);
    for (int i = 0; i < 50; i++) durations_learn(&durations, 7, 128, 160 * MS, 6);
    assert_in_range(durations_allow(&durations, 7, SPAN_NS, 1), 128, 256);
}

TEST(what_not_even_the_others_beside_it_explain_makes_it_slow) {
    durations_learn(&durations, 7, 1, 40 * MS, 0);
    durations_learn(&durations, 7, 2, 7 * 80 * MS, 6);
    assert_int_equal(durations_expect(&durations, 7, 2), 80 * MS);
    assert_int_equal(durations_allow(&durations, 7, SPAN_NS, 1), 1);
}

TEST(signatures_that_share_a_slot_keep_their_own_times) {
    durations_learn(&durations, 5, 1, 100, 0);
    durations_learn(&durations, 5 + DURATIONS_SLOTS, 1, 200, 0);
    assert_int_equal(durations_expect(&durations, 5, 1), 100);
    assert_int_equal(durations_expect(&durations, 5 + DURATIONS_SLOTS, 1), 200);
}

/* As good as random, as hashes are (splitmix64). */
static uint64_t scattered(uint64_t number) {
    uint64_t bits = number * 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
}

TEST(ten_thousand_signatures_in_turns_all_stay_known) {
    enum { SIGNATURES = 10000 };
    for (int turn = 0; turn < 3; turn++)
        for (uint64_t i = 1; i <= SIGNATURES; i++)
            durations_learn(&durations, scattered(i), 1, 100, 0);
    for (uint64_t i = 1; i <= SIGNATURES; i++)
        assert_int_equal(durations_expect(&durations, scattered(i), 1), 100);
}

TEST(a_new_signature_is_learned_in_a_full_table_and_one_in_use_stays_known) {
    for (uint64_t i = 0; i < 64; i++) {
        durations_learn(&durations, 5 + i * DURATIONS_SLOTS, 1, 100 + i, 0);
        durations_learn(&durations, 5, 1, 100, 0);
        assert_int_equal(durations_expect(&durations, 5 + i * DURATIONS_SLOTS, 1), 100 + i);
    }
    assert_int_equal(durations_expect(&durations, 5, 1), 100);
    assert_int_equal(
        durations_expect(&durations, 5 + (uint64_t)DURATIONS_SLOTS, 1), DURATIONS_UNKNOWN);
}

#define P(name) cmocka_unit_test_setup(name, set_up)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        P(a_signature_is_unknown_until_it_was_seen_and_starts_with_one_job),
        P(a_time_of_zero_is_known_all_the_same),
        P(slow_jobs_that_take_as_long_together_as_one_double_until_they_do_not),
        P(what_the_device_has_room_for_side_by_side_is_tried_at_once),
        P(a_guess_that_was_wrong_is_followed_by_single_steps),
        P(slow_jobs_that_fill_the_device_run_alone_again_after_one_try),
        P(jobs_that_are_cheaper_together_share_a_batch_that_takes_longer_than_one),
        P(each_doubling_of_a_batch_that_takes_longer_makes_a_job_a_fifth_cheaper),
        P(a_few_that_do_not_pay_together_do_not_stand_in_the_way_of_many_that_do),
        P(no_batch_takes_over_four_times_as_long_as_one_however_cheap_its_jobs_are),
        P(a_count_that_took_too_long_is_tried_again_from_time_to_time),
        P(a_count_that_has_become_too_slow_is_left),
        P(times_that_vary_do_not_part_what_runs_together_as_quickly),
        P(quick_jobs_fill_the_span_at_once),
        P(an_unknown_count_is_expected_to_take_what_fewer_take_in_proportion),
        P(fewer_jobs_take_no_longer_than_more),
        P(a_spike_moves_the_average_a_little_and_a_change_is_followed),
        P(what_a_batch_took_beside_others_does_not_make_it_slow),
        P(what_not_even_the_others_beside_it_explain_makes_it_slow),
        P(signatures_that_share_a_slot_keep_their_own_times),
        P(ten_thousand_signatures_in_turns_all_stay_known),
        P(a_new_signature_is_learned_in_a_full_table_and_one_in_use_stays_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

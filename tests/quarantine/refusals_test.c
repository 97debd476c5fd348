/* Which jobs are refused after convictions of others, and what their senders are told. */
#include "quarantine/refusals.h"

#include <string.h>

#include "suspects_rig.h"
#include "testing.h"

static struct refusals refusals_of(const struct suspects_rig *rig) {
    return (struct refusals){.state = rig->file->state,
        .suspects = rig->suspects,
        .rules = {.convictions = 2, .window_ms = 3600000, .for_ms = 3600000}};
}

/* A job of the key that names the programs, in so many steps. */
struct example {
    struct delivery delivery;
    struct job_step steps[2];
    struct job job;
};

static void fill(struct example *example, int64_t offset, const char *key, const char *first,
    const char *second) {
    *example = (struct example){
        .delivery = {.position = {.topic = "jobs", .offset = offset}, .key = slice_of_text(key)},
        .steps = {{.program = slice_of_text(first)}, {.program = slice_of_text(second)}}};
    example->job =
        (struct job){.delivery = &example->delivery, .steps = example->steps, .step_count = 2};
}

/* The message at each of these offsets is convicted, since an earlier life. */
static void convict(struct suspects_rig *rig, int64_t count) {
    size_t capacity;
    suspects_stop(rig->suspects, false);
    struct state_suspect *all = state_suspects(rig->file->state, &capacity);
    for (int64_t i = 0; i < count; i++) {
        const struct position position = {.topic = "jobs", .offset = i};
        assert_true(state_entry_of(rig->file->state, &position, 1, &all[i].at));
        all[i].standing = STATE_CONVICTED;
        all[i].code = ERR_GPU_HANG;
    }
    suspects_rig_start(rig);
}

static void note_conviction(struct suspects_rig *rig, int64_t offset, const char *key,
    const char *first, const char *second) {
    struct example example;
    fill(&example, offset, key, first, second);
    const struct refusals refusals = refusals_of(rig);
    refusals_note_conviction(&refusals, &example.delivery, &example.job);
}

static enum err check(const struct suspects_rig *rig, const char *key, const char *first,
    const char *second, struct error *err) {
    struct example example;
    fill(&example, 100, key, first, second);
    const struct refusals refusals = refusals_of(rig);
    return refusals_check(&refusals, &example.job, err);
}

TEST(a_key_is_refused_after_so_many_convictions_and_the_sender_is_told_what_ends_it) {
    struct suspects_rig *rig = *state;
    struct error err;
    convict(rig, 2);
    note_conviction(rig, 0, "mallory", "p", "q");
    assert_int_equal(check(rig, "mallory", "r", "s", &err), ERR_OK);
    note_conviction(rig, 1, "mallory", "p", "q");
    assert_int_equal(check(rig, "mallory", "r", "s", &err), ERR_SUSPENDED);
    assert_non_null(strstr(err.message, "the key of this job"));
    assert_non_null(strstr(err.fix, "gpu-worker resume --key KEY"));
    assert_int_equal(check(rig, "alice", "r", "s", &err), ERR_OK);
}

TEST(a_message_that_comes_again_counts_once) {
    struct suspects_rig *rig = *state;
    struct error err;
    convict(rig, 1);
    for (int i = 0; i < 5; i++) note_conviction(rig, 0, "mallory", "p", "q");
    assert_int_equal(check(rig, "mallory", "p", "q", &err), ERR_OK);
}

TEST(a_program_is_refused_in_any_step_but_not_to_keys_that_did_well_with_it) {
    struct suspects_rig *rig = *state;
    struct example good;
    struct error err;
    convict(rig, 2);
    fill(&good, 50, "alice", "other", "shared");
    const struct refusals refusals = refusals_of(rig);
    refusals_note_success(&refusals, &good.job);
    note_conviction(rig, 0, "mallory", "shared", "p");
    note_conviction(rig, 1, "trudy", "q", "shared");
    assert_int_equal(check(rig, "bob", "fine", "shared", &err), ERR_SUSPENDED);
    assert_non_null(strstr(err.message, "program 'shared'"));
    assert_non_null(strstr(err.fix, "gpu-worker resume --program NAME"));
    assert_int_equal(check(rig, "bob", "fine", "p", &err), ERR_OK);
    assert_int_equal(check(rig, "alice", "other", "shared", &err), ERR_OK);
}

TEST(a_program_that_a_job_names_twice_counts_once) {
    struct suspects_rig *rig = *state;
    struct error err;
    convict(rig, 1);
    note_conviction(rig, 0, "", "shared", "shared"); /* without a key, each counts */
    assert_int_equal(check(rig, "bob", "shared", "shared", &err), ERR_OK);
}

TEST(one_that_was_not_decoded_counts_against_its_key) {
    struct suspects_rig *rig = *state;
    struct error err;
    convict(rig, 2);
    for (int64_t i = 0; i < 2; i++) {
        struct example example;
        fill(&example, i, "mallory", "p", "q");
        const struct refusals refusals = refusals_of(rig);
        refusals_note_conviction(&refusals, &example.delivery, NULL);
    }
    assert_int_equal(check(rig, "mallory", "r", "s", &err), ERR_SUSPENDED);
    assert_int_equal(check(rig, "alice", "p", "q", &err), ERR_OK);
}

/* The job runs alone, and took so long. */
static void acquit(struct suspects_rig *rig, int64_t offset, uint32_t hung_with, uint64_t ms) {
    struct example example;
    size_t capacity;
    suspects_stop(rig->suspects, false);
    struct state_suspect *first = state_suspects(rig->file->state, &capacity);
    const struct position position = {.topic = "jobs", .offset = offset};
    *first = (struct state_suspect){.standing = STATE_SUSPECT, .hung_with = hung_with};
    assert_true(state_entry_of(rig->file->state, &position, 1, &first->at));
    rig->in_flight = 1;
    suspects_rig_start(rig);
    fill(&example, offset, "k", "p", "q");
    example.job.timeout_ms = 1000;
    example.job.outcome.telemetry = (struct job_telemetry){.wait_ns = ms * 1000000};
    struct delivery *delivery = delivery_create(&example.delivery);
    assert_false(suspects_pass(rig->suspects, delivery));
    assert_ptr_equal(suspects_take(rig->suspects), delivery);
    const struct refusals refusals = refusals_of(rig);
    refusals_note_acquittal(&refusals, &example.job);
    suspects_answered(rig->suspects);
    delivery_destroy(delivery);
}

TEST(a_job_that_explains_a_hang_of_its_batch_marks_its_kernels_and_counts_once) {
    struct suspects_rig *rig = *state;
    const struct state *file = rig->file->state;
    struct error err;
    const struct slice none = slice_of_text("");
    acquit(rig, 0, 0, 900); /* of another batch */
    acquit(rig, 1, 24, 20); /* 24 of these may take 480 ms, and twice as much while others run */
    assert_false(state_is_uneven(file, slice_of_text("p"), none));
    for (int64_t i = 2; i < 9; i++) acquit(rig, i, 24, 22);
    assert_true(state_is_uneven(file, slice_of_text("p"), none));
    assert_true(state_is_uneven(file, slice_of_text("q"), none));
    assert_int_equal(check(rig, "k", "r", "s", &err), ERR_OK);
    const struct refusals refusals = refusals_of(rig);
    suspects_count_death(rig->suspects, &refusals.rules, slice_of_text("k"));
    assert_int_equal(check(rig, "k", "r", "s", &err), ERR_SUSPENDED);
}

TEST(without_a_state_nobody_is_refused) {
    struct example example;
    struct error err;
    const struct refusals none = {.rules = {.convictions = 1, .window_ms = 1000, .for_ms = 1000}};
    fill(&example, 0, "mallory", "p", "q");
    refusals_note_success(&none, &example.job);
    assert_int_equal(refusals_check(&none, &example.job, &err), ERR_OK);
}

#define Q(name) cmocka_unit_test_setup_teardown(name, suspects_rig_set_up, suspects_rig_tear_down)
RUN_TESTS(Q(a_key_is_refused_after_so_many_convictions_and_the_sender_is_told_what_ends_it),
    Q(a_message_that_comes_again_counts_once),
    Q(a_program_is_refused_in_any_step_but_not_to_keys_that_did_well_with_it),
    Q(a_program_that_a_job_names_twice_counts_once),
    Q(one_that_was_not_decoded_counts_against_its_key),
    Q(a_job_that_explains_a_hang_of_its_batch_marks_its_kernels_and_counts_once),
    Q(without_a_state_nobody_is_refused))

/* Which jobs are refused after convictions of others, and what their senders are told. */
#include "quarantine/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "support/state_rig.h"
#include "testing.h"

struct fixture {
    struct state_rig *rig;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t in_flight;
    struct refusals refusals;
};

static void start(struct fixture *fixture) {
    struct error err;
    const struct suspects_options options = {.state = fixture->rig->state,
        .shape = {.lanes = 1, .depth = 1, .batch_jobs = 4},
        .uuid = "",
        .lock = &fixture->lock,
        .changed = &fixture->changed,
        .in_flight = &fixture->in_flight};
    fixture->refusals = (struct refusals){.state = fixture->rig->state,
        .rules = {.convictions = 2, .window_ms = 3600000, .for_ms = 3600000}};
    assert_int_equal(suspects_start(&options, &fixture->refusals.suspects, &err), ERR_OK);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_init(LOG_OFF, LOG_TEXT);
    (void)state_rig_set_up((void **)&fixture->rig);
    pthread_mutex_init(&fixture->lock, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    start(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    suspects_stop(fixture->refusals.suspects, false);
    (void)state_rig_tear_down((void **)&fixture->rig);
    pthread_mutex_destroy(&fixture->lock);
    pthread_cond_destroy(&fixture->changed);
    free(fixture);
    return 0;
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
static void convict(struct fixture *fixture, int64_t count) {
    size_t capacity;
    suspects_stop(fixture->refusals.suspects, false);
    struct state_suspect *all = state_suspects(fixture->rig->state, &capacity);
    for (int64_t i = 0; i < count; i++) {
        const struct position position = {.topic = "jobs", .offset = i};
        assert_true(state_entry_of(fixture->rig->state, &position, 1, &all[i].at));
        all[i].standing = STATE_CONVICTED;
        all[i].code = ERR_GPU_HANG;
    }
    start(fixture);
}

static void note_conviction(struct fixture *fixture, int64_t offset, const char *key,
    const char *first, const char *second) {
    struct example example;
    fill(&example, offset, key, first, second);
    refusals_note_conviction(&fixture->refusals, &example.delivery, &example.job);
}

static enum err check(const struct fixture *fixture, const char *key, const char *first,
    const char *second, struct error *err) {
    struct example example;
    fill(&example, 100, key, first, second);
    return refusals_check(&fixture->refusals, &example.job, err);
}

TEST(a_key_is_refused_after_so_many_convictions_and_the_sender_is_told_what_ends_it) {
    struct fixture *fixture = *state;
    struct error err;
    convict(fixture, 2);
    note_conviction(fixture, 0, "mallory", "p", "q");
    assert_int_equal(check(fixture, "mallory", "r", "s", &err), ERR_OK);
    note_conviction(fixture, 1, "mallory", "p", "q");
    assert_int_equal(check(fixture, "mallory", "r", "s", &err), ERR_SUSPENDED);
    assert_non_null(strstr(err.message, "the key of this job"));
    assert_non_null(strstr(err.fix, "gpu-worker resume --key KEY"));
    assert_int_equal(check(fixture, "alice", "r", "s", &err), ERR_OK);
}

TEST(a_message_that_comes_again_counts_once) {
    struct fixture *fixture = *state;
    struct error err;
    convict(fixture, 1);
    for (int i = 0; i < 5; i++) note_conviction(fixture, 0, "mallory", "p", "q");
    assert_int_equal(check(fixture, "mallory", "p", "q", &err), ERR_OK);
}

TEST(a_program_is_refused_in_any_step_but_not_to_keys_that_did_well_with_it) {
    struct fixture *fixture = *state;
    struct example good;
    struct error err;
    convict(fixture, 2);
    fill(&good, 50, "alice", "other", "shared");
    refusals_note_success(&fixture->refusals, &good.job);
    note_conviction(fixture, 0, "mallory", "shared", "p");
    note_conviction(fixture, 1, "trudy", "q", "shared");
    assert_int_equal(check(fixture, "bob", "fine", "shared", &err), ERR_SUSPENDED);
    assert_non_null(strstr(err.message, "program 'shared'"));
    assert_non_null(strstr(err.fix, "gpu-worker resume --program NAME"));
    assert_int_equal(check(fixture, "bob", "fine", "p", &err), ERR_OK);
    assert_int_equal(check(fixture, "alice", "other", "shared", &err), ERR_OK);
}

TEST(a_program_that_a_job_names_twice_counts_once) {
    struct fixture *fixture = *state;
    struct error err;
    convict(fixture, 1);
    note_conviction(fixture, 0, "", "shared", "shared"); /* without a key, each counts */
    assert_int_equal(check(fixture, "bob", "shared", "shared", &err), ERR_OK);
}

TEST(one_that_was_not_decoded_counts_against_its_key) {
    struct fixture *fixture = *state;
    struct error err;
    convict(fixture, 2);
    for (int64_t i = 0; i < 2; i++) {
        struct example example;
        fill(&example, i, "mallory", "p", "q");
        refusals_note_conviction(&fixture->refusals, &example.delivery, NULL);
    }
    assert_int_equal(check(fixture, "mallory", "r", "s", &err), ERR_SUSPENDED);
    assert_int_equal(check(fixture, "alice", "p", "q", &err), ERR_OK);
}

TEST(without_a_state_nobody_is_refused) {
    struct example example;
    struct error err;
    const struct refusals none = {.rules = {.convictions = 1, .window_ms = 1000, .for_ms = 1000}};
    fill(&example, 0, "mallory", "p", "q");
    refusals_note_success(&none, &example.job);
    assert_int_equal(refusals_check(&none, &example.job, &err), ERR_OK);
}

#define Q(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(Q(a_key_is_refused_after_so_many_convictions_and_the_sender_is_told_what_ends_it),
    Q(a_message_that_comes_again_counts_once),
    Q(a_program_is_refused_in_any_step_but_not_to_keys_that_did_well_with_it),
    Q(a_program_that_a_job_names_twice_counts_once),
    Q(one_that_was_not_decoded_counts_against_its_key), Q(without_a_state_nobody_is_refused))

/* Suspects run alone and guarded, convicted jobs are answered without being run. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpu_driver/cpu_driver.h"
#include "state/state.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

enum { JOBS = 40 };

struct fixture {
    struct run *run;
    char *folder;
    char path[256];
};

/* As a new process of the executor finds it. */
static void open_state(struct fixture *fixture) {
    struct error set_aside, err;
    state_close(fixture->run->state);
    assert_int_equal(state_open(fixture->path, 0, &fixture->run->state, &set_aside, &err), ERR_OK);
}

/* One folder of programs with saxpy and poison in it. */
static void link_programs(struct fixture *fixture) {
    char folder[300], link[400];
    snprintf(folder, sizeof folder, "%s/programs", fixture->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(link, sizeof link, "%s/saxpy", folder);
    assert_int_equal(symlink(GPU_WORKER_PROGRAMS_DIR "/saxpy", link), 0);
    snprintf(link, sizeof link, "%s/poison", folder);
    assert_int_equal(symlink(POISON_FOLDER "/poison", link), 0);
    run_set_text(&fixture->run->settings.programs.dir, folder);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    run_set_up((void **)&fixture->run);
    fixture->folder = scratch_create();
    snprintf(fixture->path, sizeof fixture->path, "%s/state", fixture->folder);
    link_programs(fixture);
    open_state(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    state_close(fixture->run->state);
    scratch_remove(fixture->folder);
    run_tear_down((void **)&fixture->run);
    free(fixture);
    return 0;
}

/* What an executor leaves that died with these offsets in hand. */
static void leave(struct fixture *fixture, const int64_t *offsets, size_t count) {
    struct error err;
    const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 64};
    assert_int_equal(state_begin(fixture->run->state, &shape, 0, "", &err), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        const struct position position = {.topic = "jobs", .offset = offsets[i]};
        state_note_job(fixture->run->state, 0, 0, (uint32_t)i, &position, 1);
    }
    state_launch(fixture->run->state, 0, 0, (uint32_t)count, 1, 0);
    open_state(fixture);
}

static size_t count_standing(struct fixture *fixture, enum state_standing standing) {
    size_t capacity, count = 0;
    const struct state_suspect *suspects = state_suspects(fixture->run->state, &capacity);
    for (size_t i = 0; i < capacity; i++) count += suspects[i].standing == standing;
    return count;
}

static void add_poison(struct run *run, const char *entry, const char *more) {
    char yaml[1280];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {y: {bytes: 4}, t: {bytes: 256, static: "
        "'sha256:5341e6b2646979a70e57653007a1f310169421ec9bdd9f1a5648f75ade005af1', data: {hex: "
        "'%0512d'}}}\n"
        "steps: [{program: poison, entry: %s, args: [%s], grid: [1]}]\n"
        "outputs: [{buffer: y}]\n",
        entry, 0, entry, more);
    run_add_job(run, yaml);
}

static void assert_saxpy(struct run *run, int k) {
    char id[32];
    const float expected[] = {2 * (float)k + 1, 3};
    snprintf(id, sizeof id, "job-%d", k);
    run_assert_output(run, id, 0, expected, sizeof expected);
}

static uint64_t batch_value(struct run *run, int k, const char *key) {
    char id[32];
    snprintf(id, sizeof id, "job-%d", k);
    return run_batch_telemetry(run, id, key);
}

TEST(suspects_run_alone_and_are_acquitted) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    static const int64_t offsets[] = {3, 17, 18, 39};
    leave(fixture, offsets, 4);
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) assert_saxpy(run, k);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(batch_value(run, (int)offsets[i], "jobs"), 1);
        /* two buffers up, one back, and the guards of both: each by itself */
        assert_int_equal(batch_value(run, (int)offsets[i], "copies"), 7);
    }
    assert_int_equal(batch_value(run, 4, "copies"), 2);
    size_t capacity;
    (void)state_suspects(run->state, &capacity);
    assert_int_equal(count_standing(fixture, STATE_FREE), capacity);
    device_assert_nothing_left();
}

TEST(a_stray_write_is_silent_in_a_slab_and_an_error_alone) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    add_poison(run, "stray", "y, {u32: 1}");
    run_execute_ok(run);
    static const uint32_t zero;
    run_assert_output(run, "stray", 0, &zero, sizeof zero);

    run_restart(run);
    open_state(fixture);
    leave(fixture, (const int64_t[]){0}, 1);
    run_execute_ok(run);
    run_assert_error(run, "stray", "gpu_stray_write");
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, "stray");
    assert_non_null(letter);
    assert_non_null(strstr(memory_header(letter, "dlq.error.message"), "outside of buffer 'y'"));
    assert_int_equal(count_standing(fixture, STATE_SUSPECT), 0);
}

TEST(a_job_that_costs_the_gpu_is_convicted_alone_and_all_others_complete) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    add_poison(run, "overrun", "y, t, {u32: 64}");
    for (int k = JOBS; k < 2 * JOBS; k++) run_add_saxpy(run, k);

    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS); /* in company */
    run_restart(run);
    open_state(fixture);
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS); /* alone */
    assert_int_equal(count_standing(fixture, STATE_ALONE), 1);
    run_restart(run);
    open_state(fixture);
    run_execute_ok(run);
    for (int k = 0; k < 2 * JOBS; k++) assert_saxpy(run, k);
    run_assert_error(run, "overrun", "gpu_illegal_address");
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, "overrun");
    assert_non_null(
        strstr(memory_header(letter, "dlq.error.message"), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_string_equal(memory_header(letter, "dlq.attempts"), "2"); /* both of those above */
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 1);
}

TEST(what_owners_may_have_died_of_runs_alone_and_is_acquitted) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    for (int k = 0; k < JOBS; k++) {
        run_add_saxpy(run, k);
        run->places[k].comes_contested = k % 3 == 1;
    }
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        assert_saxpy(run, k);
        if (k % 3 == 1) assert_int_equal(batch_value(run, k, "copies"), 7); /* with guards */
    }
    size_t capacity;
    (void)state_suspects(run->state, &capacity);
    assert_int_equal(count_standing(fixture, STATE_FREE), capacity);
}

static void revoke_once_it_failed(struct run *run) {
    run->broker.is_revoking = cpu_driver_counters().faults > 0;
}

/* What waits for its next try goes with its partition, and takes nobody's turn along. */
TEST(a_suspect_that_is_handed_back_lets_the_next_one_run) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    run->settings.retry.base_ms = run->settings.retry.max_ms = 3600000;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:launch_out_of_resources@1");
    for (int k = 0; k < 3; k++) {
        run_add_saxpy(run, k);
        run->places[k].comes_contested = k < 2;
        run->places[k].partition = k;
    }
    run->on_poll = revoke_once_it_failed;
    assert_int_equal(run_execute(run), ERR_OK);
    for (int k = 0; k < 3; k++) assert_int_equal(run->broker.finished[k], k > 0);
    assert_int_equal(count_standing(fixture, STATE_SUSPECT), 1); /* whoever gets it next knows */
}

TEST(without_a_state_file_nobody_runs_alone) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    state_close(run->state);
    run->state = NULL;
    run_add_saxpy(run, 0);
    run->places[0].comes_contested = true;
    run_execute_ok(run);
    assert_int_equal(batch_value(run, 0, "copies"), 2);
}

TEST(a_job_that_owners_died_of_is_convicted_by_the_first_death_that_is_noted) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    add_poison(run, "overrun", "y, t, {u32: 64}");
    for (int k = 0; k <= JOBS; k++) run->places[k].comes_contested = true;
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_int_equal(count_standing(fixture, STATE_ALONE), 1);
    run_restart(run);
    open_state(fixture);
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) assert_saxpy(run, k);
    run_assert_error(run, "overrun", "gpu_illegal_address");
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 1);
}

/* Three messages wait, and one at the second one's place, which was published then, is convicted;
 * 0: it is not known when. */
static void convict_second(struct fixture *fixture, uint64_t published_unix_ms) {
    struct run *run = fixture->run;
    leave(fixture, (const int64_t[]){1}, 1);
    for (int k = 0; k < 3; k++) run_add_saxpy(run, k);
    run->stop = 1;
    assert_int_equal(run_execute(run), ERR_OK); /* nothing is taken, and nothing committed */
    run->stop = 0;
    assert_int_equal(count_standing(fixture, STATE_SUSPECT), 1);
    size_t capacity;
    struct state_suspect *suspects = state_suspects(run->state, &capacity);
    for (size_t i = 0; i < capacity; i++) {
        if (suspects[i].standing != STATE_SUSPECT) continue;
        suspects[i].standing = STATE_CONVICTED;
        suspects[i].code = ERR_GPU_HANG;
        suspects[i].at.published_unix_ms = published_unix_ms;
    }
    run_restart(run);
    open_state(fixture);
    run_execute_ok(run);
}

TEST(a_verdict_is_of_a_message_and_not_of_another_that_comes_to_its_place) {
    struct fixture *fixture = *state;
    convict_second(fixture, MEMORY_PUBLISHED_MS + 1);
    assert_int_equal(fixture->run->summary.ok, 3);
    assert_int_equal(count_standing(fixture, STATE_CONVICTED), 0);
}

TEST(a_verdict_is_kept_until_its_offset_is_committed) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    convict_second(fixture, MEMORY_PUBLISHED_MS);
    run_assert_error(run, "job-1", "gpu_hang");
    assert_int_equal(count_standing(fixture, STATE_CONVICTED), 0);
}

static const struct memory_message *only_dead_letter(struct run *run) {
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 1);
    const struct memory_message *message = run->broker.messages;
    while (message->route != ROUTE_DEAD_LETTER) message++;
    return message;
}

TEST(who_killed_its_decoder_gets_a_dead_letter_alone_and_is_not_decoded) {
    struct fixture *fixture = *state;
    struct run *run = fixture->run;
    leave(fixture, (const int64_t[]){1}, 1);
    /* one death makes it a suspect, and the next one convicts it */
    for (int k = 0; k < 3; k++) run_add_saxpy(run, k);
    run->stop = 1;
    assert_int_equal(run_execute(run), ERR_OK);
    run->stop = 0;
    size_t capacity;
    struct state_suspect *suspects = state_suspects(run->state, &capacity);
    assert_int_equal(count_standing(fixture, STATE_SUSPECT), 1);
    for (size_t i = 0; i < capacity; i++)
        if (suspects[i].standing == STATE_SUSPECT) suspects[i].standing = STATE_DECODING_ALONE;
    const struct state_death death = {.kind = STATE_DEATH_SIGNAL, .message = "SIGSEGV"};
    state_record_death(run->state, &death);
    run_restart(run);
    open_state(fixture);
    run_execute_ok(run);
    assert_saxpy(run, 0);
    assert_saxpy(run, 2);
    assert_null(memory_find(&run->broker, ROUTE_RESULT, "job-1"));
    assert_string_equal(memory_header(only_dead_letter(run), "dlq.attempts"), "2");
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(S(suspects_run_alone_and_are_acquitted),
    S(a_stray_write_is_silent_in_a_slab_and_an_error_alone),
    S(a_job_that_costs_the_gpu_is_convicted_alone_and_all_others_complete),
    S(what_owners_may_have_died_of_runs_alone_and_is_acquitted),
    S(a_suspect_that_is_handed_back_lets_the_next_one_run),
    S(without_a_state_file_nobody_runs_alone),
    S(a_job_that_owners_died_of_is_convicted_by_the_first_death_that_is_noted),
    S(a_verdict_is_of_a_message_and_not_of_another_that_comes_to_its_place),
    S(a_verdict_is_kept_until_its_offset_is_committed),
    S(who_killed_its_decoder_gets_a_dead_letter_alone_and_is_not_decoded))

/* What counts against a message that was alone when its executor died, and how often an executor is
 * started again. */
#include "quarantine/attribution.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "state/crash.h"
#include "supervise/executors.h"
#include "support/executor_rig.h"
#include "testing.h"

enum { STOPS = 10, LIFE = 8 };

static const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 1};
static const struct position position = {.topic = "jobs", .partition = 0, .offset = 5};

static int set_up(void **state) {
    (void)executor_rig_set_up(state);
    ((struct executor_rig *)*state)->executor.life = LIFE;
    return 0;
}

static struct attribution begin(struct state *state) {
    struct error err;
    struct attribution attribution = attribution_apply(state);
    state_name_life(state, LIFE);
    assert_int_equal(state_begin(state, &shape, 3, "GPU-3", &err), ERR_OK);
    return attribution;
}

/* The message is a suspect, and runs alone from now on. */
static void run_alone(struct state *state) {
    size_t capacity;
    struct state_suspect *suspects = state_suspects(state, &capacity);
    assert_true(state_entry_of(state, &position, 1, &suspects[0].at));
    suspects[0].standing = STATE_ALONE;
}

TEST(stops_convict_nobody_however_often_and_however_they_end) {
    struct executor_rig *rig = *state;
    struct state *life = executor_rig_open_state(rig);
    (void)begin(life);
    for (int i = 0; i < STOPS; i++) {
        run_alone(life);
        state_note_stop(life);
        state_close(life); /* the drain ran out: nothing was put in order */
        life = executor_rig_open_state(rig);
        const struct attribution attribution = begin(life);
        assert_int_equal(attribution.death.kind, STATE_DEATH_STOP);
        assert_null(attribution.convicted);
        assert_int_equal(attribution.suspects, 1);
    }
    state_close(life);
}

TEST(a_stop_before_a_life_begins_says_nothing_of_how_the_one_before_has_died) {
    struct executor_rig *rig = *state;
    struct state *life = executor_rig_open_state(rig);
    (void)begin(life);
    state_enter(life, &position, 1);
    state_close(life); /* killed from outside */
    life = executor_rig_open_state(rig);
    state_note_stop(life);
    const struct attribution attribution = begin(life);
    assert_int_equal(attribution.death.kind, STATE_DEATH_NONE);
    assert_int_equal(attribution.suspects, 1);
    state_close(life);
}

TEST(what_a_supervisor_ends_as_it_stops_convicts_nobody) {
    struct executor_rig *rig = *state;
    for (int i = 0; i < STOPS; i++) {
        struct state *life = executor_rig_open_state(rig);
        assert_null(begin(life).convicted);
        run_alone(life);
        state_close(life);
        rig->executor.standing = STANDING_KILLED; /* frozen, it never heard of the stop */
        executor_reap(&rig->executor, SIGKILL, true);
    }
}

static void *crash_with_nothing_in_hand(void *context) {
    crash_is_no_evidence();
    raise(SIGSEGV);
    return NULL;
}

static void *crash(void *context) {
    raise(SIGSEGV);
    return NULL;
}

/* An executor whose thread crashes while the message runs alone; how the next one finds it. */
static struct attribution hear_crash(struct executor_rig *rig, void *(*run)(void *context)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        struct state *life = executor_rig_open_state(rig);
        signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
        crash_watch(life);
        (void)begin(life);
        run_alone(life);
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    rig->executor.standing = STANDING_RUNNING;
    rig->executor.pid = pid;
    executor_reap(&rig->executor, status, false);
    struct state *next = executor_rig_open_state(rig);
    struct attribution attribution = attribution_apply(next);
    state_close(next);
    return attribution;
}

TEST(the_crash_of_a_thread_that_holds_nothing_convicts_nobody) {
    struct executor_rig *rig = *state;
    for (int i = 0; i < STOPS; i++) {
        const struct attribution attribution = hear_crash(rig, crash_with_nothing_in_hand);
        assert_int_equal(attribution.death.kind, STATE_DEATH_OWN);
        assert_null(attribution.convicted);
    }
}

TEST(the_crash_of_another_thread_convicts_who_was_alone) {
    struct executor_rig *rig = *state;
    const struct attribution attribution = hear_crash(rig, crash);
    assert_int_equal(attribution.death.kind, STATE_DEATH_SIGNAL);
    assert_non_null(attribution.convicted);
}

/* A life that ends by a signal with so much in hand. */
static void live_and_crash(struct executor_rig *rig, bool has_message) {
    struct state *life = executor_rig_open_state(rig);
    (void)begin(life);
    if (has_message) {
        state_note_job(life, 0, 0, 0, &position, 1);
        state_launch(life, 0, 0, 1, 1, 0);
    }
    state_close(life);
    rig->executor.standing = STANDING_RUNNING;
    executor_reap(&rig->executor, SIGSEGV, false);
}

TEST(a_crash_of_nobody_has_a_budget_whatever_its_signal) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    for (uint32_t i = 1; i < rig->settings.executors.deaths_max; i++) {
        live_and_crash(rig, false);
        assert_int_equal(executor->standing, STANDING_WAITING);
        assert_int_equal(executor->deaths, i);
    }
    live_and_crash(rig, false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
    struct state *state_file = executor_rig_open_state(rig);
    struct state_summary summary = state_summary(state_file);
    assert_true(summary.is_unhealthy);
    assert_non_null(strstr(summary.fault, "the last: signal 11 ("));
    state_close(state_file);
}

TEST(a_crash_of_somebody_costs_nothing_of_the_budget) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    for (uint32_t i = 0; i <= rig->settings.executors.deaths_max; i++) {
        live_and_crash(rig, true);
        assert_int_equal(executor->standing, STANDING_WAITING);
        assert_int_equal(executor->deaths, 0);
    }
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, executor_rig_tear_down)
RUN_TESTS(F(stops_convict_nobody_however_often_and_however_they_end),
    F(a_stop_before_a_life_begins_says_nothing_of_how_the_one_before_has_died),
    F(what_a_supervisor_ends_as_it_stops_convicts_nobody),
    F(the_crash_of_a_thread_that_holds_nothing_convicts_nobody),
    F(the_crash_of_another_thread_convicts_who_was_alone),
    F(a_crash_of_nobody_has_a_budget_whatever_its_signal),
    F(a_crash_of_somebody_costs_nothing_of_the_budget))

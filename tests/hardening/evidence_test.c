/* What counts against a message that was alone when its executor died, and how often an executor is
 * started again. */
#include "state/inquest.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "state/crash.h"
#include "supervise/executors.h"
#include "support/scratch.h"
#include "testing.h"

enum { STOPS = 10, LIFE = 8 };

static const struct probed_device device = {.index = 3, .uuid = "GPU-3"};
static const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 1};
static const struct position position = {.topic = "jobs", .partition = 0, .offset = 5};

struct fixture {
    char *folder;
    struct settings settings;
    struct supervise_options options;
    struct executor executor;
};

static int set_up(void **state) {
    struct error err;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_init(LOG_OFF, LOG_TEXT);
    fixture->folder = scratch_create();
    settings_init(&fixture->settings);
    fixture->options = (struct supervise_options){
        .settings = &fixture->settings, .state_dir = fixture->folder, .devices = &device};
    assert_int_equal(executor_init(&fixture->executor, &fixture->options, &device, &err), ERR_OK);
    fixture->executor.life = LIFE;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    executor_fini(&fixture->executor);
    settings_fini(&fixture->settings);
    scratch_remove(fixture->folder);
    free(fixture);
    return 0;
}

static struct state *open_state(const struct executor *executor) {
    struct error set_aside, err;
    struct state *state;
    assert_int_equal(state_open(executor->state_path, 0, &state, &set_aside, &err), ERR_OK);
    return state;
}

static struct inquest begin(struct state *state) {
    struct error err;
    struct inquest inquest = inquest_hold(state);
    state_name_life(state, LIFE);
    assert_int_equal(state_begin(state, &shape, 3, "GPU-3", &err), ERR_OK);
    return inquest;
}

/* The message is a suspect, and runs alone from now on. */
static void run_alone(struct state *state) {
    size_t capacity;
    struct state_suspect *suspects = state_suspects(state, &capacity);
    assert_true(state_entry_of(state, &position, 1, &suspects[0].at));
    suspects[0].standing = STATE_ALONE;
}

TEST(stops_convict_nobody_however_often_and_however_they_end) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    struct state *life = open_state(executor);
    (void)begin(life);
    for (int i = 0; i < STOPS; i++) {
        run_alone(life);
        state_note_stop(life);
        state_close(life); /* the drain ran out: nothing was put in order */
        life = open_state(executor);
        const struct inquest inquest = begin(life);
        assert_int_equal(inquest.death.kind, STATE_DEATH_STOP);
        assert_null(inquest.convicted);
        assert_int_equal(inquest.suspects, 1);
    }
    state_close(life);
}

TEST(what_a_supervisor_ends_as_it_stops_convicts_nobody) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    for (int i = 0; i < STOPS; i++) {
        struct state *life = open_state(executor);
        assert_null(begin(life).convicted);
        run_alone(life);
        state_close(life);
        executor->standing = STANDING_KILLED; /* frozen, it never heard of the stop */
        executor_reap(executor, SIGKILL, true);
    }
}

static void *crash_with_nothing_in_hand(void *context) {
    crash_is_no_evidence("reporter");
    raise(SIGSEGV);
    return NULL;
}

static void *crash(void *context) {
    raise(SIGSEGV);
    return NULL;
}

/* An executor whose thread crashes while the message runs alone; how the next one finds it. */
static struct inquest hear_crash(struct executor *executor, void *(*run)(void *context)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        struct state *life = open_state(executor);
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
    executor->standing = STANDING_RUNNING;
    executor->pid = pid;
    executor_reap(executor, status, false);
    struct state *next = open_state(executor);
    struct inquest inquest = inquest_hold(next);
    state_close(next);
    return inquest;
}

TEST(the_crash_of_a_thread_that_holds_nothing_convicts_nobody) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    for (int i = 0; i < STOPS; i++) {
        const struct inquest inquest = hear_crash(executor, crash_with_nothing_in_hand);
        assert_int_equal(inquest.death.kind, STATE_DEATH_OWN);
        assert_null(inquest.convicted);
    }
}

TEST(the_crash_of_another_thread_convicts_who_was_alone) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    const struct inquest inquest = hear_crash(executor, crash);
    assert_int_equal(inquest.death.kind, STATE_DEATH_SIGNAL);
    assert_non_null(inquest.convicted);
}

/* A life that ends by a signal with so much in hand. */
static void live_and_crash(struct executor *executor, bool has_message) {
    struct state *life = open_state(executor);
    (void)begin(life);
    if (has_message) {
        state_note_job(life, 0, 0, 0, &position, 1);
        state_launch(life, 0, 0, 1, 1, 0);
    }
    state_close(life);
    executor->standing = STANDING_RUNNING;
    executor_reap(executor, SIGSEGV, false);
}

TEST(a_crash_of_nobody_has_a_budget_whatever_its_signal) {
    struct fixture *fixture = *state;
    struct executor *executor = &fixture->executor;
    for (uint32_t i = 1; i < fixture->settings.executors.deaths_max; i++) {
        live_and_crash(executor, false);
        assert_int_equal(executor->standing, STANDING_WAITING);
        assert_int_equal(executor->deaths, i);
    }
    live_and_crash(executor, false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
}

TEST(a_crash_of_somebody_costs_nothing_of_the_budget) {
    struct fixture *fixture = *state;
    struct executor *executor = &fixture->executor;
    for (uint32_t i = 0; i <= fixture->settings.executors.deaths_max; i++) {
        live_and_crash(executor, true);
        assert_int_equal(executor->standing, STANDING_WAITING);
        assert_int_equal(executor->deaths, 0);
    }
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(stops_convict_nobody_however_often_and_however_they_end),
    F(what_a_supervisor_ends_as_it_stops_convicts_nobody),
    F(the_crash_of_a_thread_that_holds_nothing_convicts_nobody),
    F(the_crash_of_another_thread_convicts_who_was_alone),
    F(a_crash_of_nobody_has_a_budget_whatever_its_signal),
    F(a_crash_of_somebody_costs_nothing_of_the_budget))

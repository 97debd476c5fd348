/* When a worker counts as ready, and what it says where it does not. */
#include "supervise/health.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "state/layout.h"
#include "support/executor_rig.h"
#include "testing.h"

#define SECOND_NS 1000000000ull

/* What readers of README rely on. */
#define LATE_S 15
#define REBALANCE_S 30

/* An executor that runs, and whose file can be written to as the process would. */
struct fixture {
    struct executor_rig *rig;
    struct state *state;
    struct health health;
};

static int set_up(void **state) {
    static struct fixture fixture;
    struct error err;
    void *rig;
    const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 1};
    assert_int_equal(executor_rig_set_up(&rig), 0);
    fixture = (struct fixture){.rig = rig};
    fixture.state = executor_rig_open_state(fixture.rig);
    state_name_life(fixture.state, 7);
    assert_int_equal(state_begin(fixture.state, &shape, 3, "GPU-3", &err), ERR_OK);
    state_set_programs(fixture.state, 2);
    state_set_group(fixture.state, STATE_GROUP_MEMBER);
    struct executor *executor = &fixture.rig->executor;
    executor->standing = STANDING_RUNNING;
    executor->life = 7;
    assert_int_equal(state_watch(executor->state_path, 7, &executor->watched, &err), ERR_OK);
    fixture.health = (struct health){.executors = executor, .count = 1, .now_ns = clock_ns()};
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    void *rig = fixture->rig;
    state_close(fixture->state);
    return executor_rig_tear_down(&rig);
}

/* What the page says now, to be freed. */
static char *page_of(const struct fixture *fixture, bool is_verbose, bool *is_ready) {
    struct executor *executor = &fixture->rig->executor;
    char *text;
    size_t size;
    struct error err;
    if (executor->watched != NULL) assert_int_equal(state_look(executor->watched, &err), ERR_OK);
    FILE *page = open_memstream(&text, &size);
    assert_non_null(page);
    *is_ready = health_write(&fixture->health, is_verbose, page);
    assert_int_equal(fclose(page), 0);
    return text;
}

/* The word that metrics have for it. */
static void assert_reason(const struct fixture *fixture, const char *reason) {
    char ret[HEALTH_REASON_BYTES];
    health_reason(&fixture->rig->executor, fixture->health.now_ns, ret);
    assert_string_equal(ret, reason);
}

static void assert_ready(const struct fixture *fixture) {
    bool is_ready;
    char *text = page_of(fixture, false, &is_ready);
    assert_string_equal(text, "ready\n");
    assert_true(is_ready);
    free(text);
    assert_reason(fixture, "");
}

static void assert_not_ready(const struct fixture *fixture, const char *why) {
    bool is_ready;
    char *text = page_of(fixture, false, &is_ready), status[400];
    assert_false(is_ready);
    assert_memory_equal(text, "not ready\n", 10);
    if (strstr(text, why) == NULL) fail_msg("no '%s' in\n%s", why, text);
    health_describe(&fixture->health, status, sizeof status);
    if (!fixture->health.is_stopping) assert_non_null(strstr(status, why));
    free(text);
}

TEST(a_member_of_its_group_with_programs_is_ready) {
    struct fixture *fixture = *state;
    bool is_ready;
    char status[100];
    assert_ready(fixture);
    char *text = page_of(fixture, true, &is_ready);
    assert_string_equal(text, "ready\n"
                              "stop: ok\n"
                              "gpu 3 (GPU-3), device: ok\n"
                              "gpu 3 (GPU-3), executor: ok\n"
                              "gpu 3 (GPU-3), programs: ok\n"
                              "gpu 3 (GPU-3), group: ok\n"
                              "gpu 3 (GPU-3), jobs: ok\n");
    free(text);
    health_describe(&fixture->health, status, sizeof status);
    assert_string_equal(status, "ready: 1 of 1 GPUs take jobs");
}

static void assert_reload_is_told(const struct fixture *fixture, bool is_told) {
    bool is_ready;
    char *text = page_of(fixture, false, &is_ready), status[100];
    assert_true(is_ready);
    assert_int_equal(strstr(text, "\nreload: the last one was refused") != NULL, is_told);
    health_describe(&fixture->health, status, sizeof status);
    assert_int_equal(strstr(status, "the last reload was refused") != NULL, is_told);
    free(text);
}

TEST(one_whose_reload_was_refused_is_ready_and_says_so) {
    struct fixture *fixture = *state;
    assert_reload_is_told(fixture, false);
    fixture->health.is_reload_refused = true;
    assert_reload_is_told(fixture, true);
    fixture->health.is_reload_refused = false;
    state_set_reload(fixture->state, true);
    assert_reload_is_told(fixture, true);
    state_set_reload(fixture->state, false);
    assert_reload_is_told(fixture, false);
}

TEST(one_that_drains_is_not_ready) {
    struct fixture *fixture = *state;
    char status[100];
    fixture->health.is_stopping = true;
    assert_not_ready(fixture, "\nstop: the worker finishes what it has begun and ends");
    health_describe(&fixture->health, status, sizeof status);
    assert_memory_equal(status, "stopping", 8);
}

TEST(one_without_programs_is_not_ready) {
    struct fixture *fixture = *state;
    state_set_programs(fixture->state, 0);
    assert_not_ready(fixture, "gpu 3 (GPU-3), programs: they are not loaded yet");
    assert_reason(fixture, "no_programs");
}

TEST(one_that_has_never_been_a_member_is_not_ready_and_says_how_far_it_came) {
    static const struct {
        enum state_group group;
        const char *why;
    } all[] = {{STATE_GROUP_UNKNOWN, "does not take jobs yet"},
        {STATE_GROUP_NO_BROKER, "no broker has answered yet; check kafka.bootstrap_servers"},
        {STATE_GROUP_JOINING, "joining its group for 0 s"}};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        state_set_group(fixture->state, all[i].group);
        assert_not_ready(fixture, all[i].why);
        assert_reason(fixture, "group");
    }
}

TEST(a_run_of_files_needs_no_group) {
    struct fixture *fixture = *state;
    state_set_group(fixture->state, STATE_GROUP_NOT_ASKED);
    assert_ready(fixture);
}

/* Looks so long after its place in the group changed at an executor that has moved just before. */
static void look_later(struct fixture *fixture, uint64_t seconds) {
    uint64_t changed_ns = atomic_load(&fixture->state->head->group_ns);
    fixture->health.now_ns = changed_ns + seconds * SECOND_NS;
    atomic_store(&fixture->state->head->heartbeat_ns, fixture->health.now_ns - SECOND_NS);
}

TEST(a_member_keeps_its_readiness_for_as_long_as_a_rebalance_may_take) {
    struct fixture *fixture = *state;
    fixture->rig->settings.drain_timeout_ms = 20000;
    state_set_group(fixture->state, STATE_GROUP_AWAY);
    look_later(fixture, 20 + REBALANCE_S);
    assert_ready(fixture);
    look_later(fixture, 20 + REBALANCE_S + 1);
    assert_not_ready(
        fixture, "group: it has been out of its group for 51 s; check that the brokers");
    state_set_group(fixture->state, STATE_GROUP_MEMBER);
    assert_ready(fixture);
}

TEST(an_executor_that_does_not_move_is_not_ready) {
    struct fixture *fixture = *state;
    state_heartbeat(fixture->state);
    uint64_t moved_ns = atomic_load(&fixture->state->head->heartbeat_ns);
    fixture->health.now_ns = moved_ns + (LATE_S - 1) * SECOND_NS;
    assert_ready(fixture);
    fixture->health.now_ns = moved_ns + LATE_S * SECOND_NS;
    assert_not_ready(fixture, "executor: it has not moved for 15 s");
    assert_reason(fixture, "silent");
}

TEST(an_executor_whose_jobs_wait_for_trouble_of_its_own_is_not_ready) {
    struct fixture *fixture = *state;
    state_set_trouble(fixture->state, "blob_store");
    assert_not_ready(
        fixture, "jobs: they wait because of a problem of the worker itself (blob_store)");
    assert_reason(fixture, "blob_store");
    state_set_trouble(fixture->state, "");
    assert_ready(fixture);
}

TEST(a_device_without_an_executor_is_not_ready) {
    static const struct {
        enum standing standing;
        const char *why;
    } all[] = {{STANDING_WAITING, "device: it has no executor at the moment"},
        {STANDING_KILLED, "device: it has no executor at the moment"},
        {STANDING_ENDED, "device: its executor has ended"},
        {STANDING_UNHEALTHY, "device: it is unhealthy (stuck) and gets no executor any more"}};
    struct fixture *fixture = *state;
    struct executor *executor = &fixture->rig->executor;
    executor->unhealthy = "stuck";
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        executor->standing = all[i].standing;
        assert_not_ready(fixture, all[i].why);
    }
    state_close(executor->watched);
    executor->watched = NULL;
    executor->standing = STANDING_RUNNING;
    executor->started_ns = fixture->health.now_ns - 3 * SECOND_NS;
    assert_not_ready(fixture, "device: its executor has been starting for 3 s");
    assert_reason(fixture, "no_executor");
}

TEST(one_device_of_two_that_takes_jobs_makes_the_worker_ready) {
    struct fixture *fixture = *state;
    struct executor both[2] = {fixture->rig->executor, fixture->rig->executor};
    char *text, status[100];
    bool is_ready;
    both[0].standing = STANDING_UNHEALTHY;
    both[0].unhealthy = "deaths";
    fixture->health.executors = both;
    fixture->health.count = 2;
    text = page_of(fixture, false, &is_ready);
    assert_true(is_ready);
    assert_non_null(strstr(text, "it is unhealthy (deaths)"));
    free(text);
    health_describe(&fixture->health, status, sizeof status);
    assert_string_equal(status, "ready: 1 of 2 GPUs take jobs");
    both[1].standing = STANDING_UNHEALTHY;
    free(page_of(fixture, false, &is_ready));
    assert_false(is_ready);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(a_member_of_its_group_with_programs_is_ready),
    F(one_whose_reload_was_refused_is_ready_and_says_so), F(one_that_drains_is_not_ready),
    F(one_without_programs_is_not_ready),
    F(one_that_has_never_been_a_member_is_not_ready_and_says_how_far_it_came),
    F(a_run_of_files_needs_no_group),
    F(a_member_keeps_its_readiness_for_as_long_as_a_rebalance_may_take),
    F(an_executor_that_does_not_move_is_not_ready),
    F(an_executor_whose_jobs_wait_for_trouble_of_its_own_is_not_ready),
    F(a_device_without_an_executor_is_not_ready),
    F(one_device_of_two_that_takes_jobs_makes_the_worker_ready))

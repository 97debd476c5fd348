/* What the supervisor decides of an executor, without waiting for it. */
#include "supervise/executors.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "supervise/metrics_page.h"
#include "support/executor_rig.h"
#include "testing.h"

/* What worker/README.md promises. */
#define DIES_WITHIN_NS 15000000000u
#define KILLED_NS 1000000000u

/* An executor that was killed just now, and is not dead. */
static int set_up(void **state) {
    (void)executor_rig_set_up(state);
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    executor->standing = STANDING_KILLED;
    executor->killed_ns = KILLED_NS;
    return 0;
}

TEST(a_killed_executor_has_its_time_to_die) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    executor_tend(executor, KILLED_NS + DIES_WITHIN_NS, false);
    assert_int_equal(executor->standing, STANDING_KILLED);
    executor_reap(executor, SIGKILL, false);
    assert_int_equal(executor->standing, STANDING_WAITING);
}

TEST(one_that_does_not_die_makes_its_device_unhealthy_for_good) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    executor_tend(executor, KILLED_NS + DIES_WITHIN_NS + 1, false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
    assert_true(executor_is_over(executor));
    executor_reap(executor, SIGKILL, false); /* it dies after all */
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
}

TEST(one_that_nvml_speaks_against_is_never_started) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    executor->standing = STANDING_WAITING;
    snprintf(rig->device.fault, sizeof rig->device.fault, "it has fallen off the bus");
    executor_tend(executor, 0, false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
    assert_int_equal(executor->starts, 0);
}

/* A process that does nothing, as one that hangs in the driver. */
static pid_t start_idle_process(void) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    for (;;) pause();
}

TEST(one_that_hangs_before_its_life_begins_is_killed_and_started_again) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    uint64_t limit_ns = rig->settings.executors.stall_ms * 1000000ull;
    int status;
    executor->pid = start_idle_process();
    assert_true(executor->pid > 0);
    executor->standing = STANDING_RUNNING;
    executor->started_ns = KILLED_NS;
    executor_tend(executor, KILLED_NS + limit_ns, false);
    assert_int_equal(executor->standing, STANDING_RUNNING);
    for (int looks = 0; looks < 20; looks++)
        executor_tend(executor, KILLED_NS + limit_ns + 1, false);
    assert_int_equal(executor->standing, STANDING_KILLED);
    assert_int_equal(waitpid(executor->pid, &status, 0), executor->pid);
    executor_reap(executor, status, false);
    assert_int_equal(executor->standing, STANDING_WAITING);
}

TEST(one_that_is_stopped_before_its_life_begins_has_left_no_job_undone) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    executor->standing = STANDING_RUNNING;
    executor_reap(executor, SIGTERM, true);
    assert_int_equal(executor->standing, STANDING_ENDED);
    assert_int_equal(executor->exit_code, CLI_OK);
    rig->options.is_finite = true;
    executor->standing = STANDING_RUNNING;
    executor_reap(executor, SIGTERM, true);
    assert_int_equal(executor->exit_code, CLI_DRAIN);
}

TEST(one_that_is_killed_because_it_does_not_stop_is_told) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    executor_reap(executor, SIGKILL, true);
    assert_int_equal(executor->standing, STANDING_ENDED);
    assert_int_equal(executor->exit_code, CLI_DRAIN);
}

/* The executor runs, and its state file is open. */
static struct state *begin_life(struct executor_rig *rig) {
    const struct state_shape shape = {
        .lanes = rig->settings.lanes + 1, .depth = 1, .batch_jobs = 1};
    struct executor *executor = &rig->executor;
    struct state *state = executor_rig_open_state(rig);
    struct error err;
    state_name_life(state, 1);
    assert_int_equal(state_begin(state, &shape, 3, "GPU-3", &err), ERR_OK);
    executor->life = 1;
    executor->standing = STANDING_RUNNING;
    executor->pid = start_idle_process();
    assert_true(executor->pid > 0);
    return state;
}

static void assert_next_line_says(FILE *log, const char *part) {
    char line[400];
    assert_non_null(fgets(line, sizeof line, log));
    if (strstr(line, part) == NULL) fail_msg("no '%s' in %s", part, line);
}

/* The executor began its life, unless its state file says nothing of it, and ends with the code. */
static enum standing end_life(struct executor_rig *rig, bool has_begun, int exit_code) {
    struct executor *executor = &rig->executor;
    executor->standing = STANDING_RUNNING;
    executor->life = 1;
    if (has_begun) {
        state_close(begin_life(rig));
        kill(executor->pid, SIGKILL);
        assert_int_equal(waitpid(executor->pid, NULL, 0), executor->pid);
    }
    executor_reap(executor, exit_code << 8, false); /* as wait statuses say it */
    return executor->standing;
}

TEST(one_that_ended_for_a_reason_that_stays_is_not_started_again) {
    static const int codes[] = {CLI_OK, CLI_USAGE, CLI_CONFIG, CLI_DRAIN};
    struct executor_rig *rig = *state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_int_equal(end_life(rig, true, codes[i]), STANDING_ENDED);
        assert_int_equal(rig->executor.exit_code, codes[i]);
    }
}

TEST(one_that_lost_what_may_come_back_is_started_again) {
    static const int codes[] = {CLI_FAILED, CLI_DEVICE, CLI_BROKER};
    struct executor_rig *rig = *state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        rig->executor.deaths = 0;
        assert_int_equal(end_life(rig, true, codes[i]), STANDING_WAITING);
        assert_int_equal(rig->executor.deaths, 1);
    }
}

TEST(one_whose_life_did_not_begin_is_not_started_again) {
    static const int codes[] = {CLI_FAILED, CLI_DEVICE, CLI_BROKER};
    struct executor_rig *rig = *state;
    rig->options.device_count = 1;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_int_equal(end_life(rig, false, codes[i]), STANDING_ENDED);
        assert_int_equal(rig->executor.exit_code, codes[i]);
    }
    rig->options.device_count = 2; /* the others go on */
    assert_int_equal(end_life(rig, false, CLI_DEVICE), STANDING_UNHEALTHY);
    assert_string_equal(rig->executor.unhealthy, "no_start");
}

TEST(one_that_the_brokers_refuse_again_and_again_ends_and_blames_no_device) {
    struct executor_rig *rig = *state;
    uint32_t deaths_max = rig->settings.executors.deaths_max;
    for (uint32_t i = 1; i <= deaths_max; i++) {
        enum standing standing = end_life(rig, true, CLI_BROKER);
        assert_int_equal(standing, i < deaths_max ? STANDING_WAITING : STANDING_ENDED);
    }
    assert_int_equal(rig->executor.exit_code, CLI_BROKER);
}

/* The brokers refuse it after it lived so long, and had answered one message more than the lives
 * before. Returns how long the next start waits. */
static uint64_t refuse_after(struct executor_rig *rig, uint64_t lived_ms) {
    struct executor *executor = &rig->executor;
    struct state *state = begin_life(rig);
    state_count(state, executor->finished + 1, 0);
    state_close(state);
    kill(executor->pid, SIGKILL);
    assert_int_equal(waitpid(executor->pid, NULL, 0), executor->pid);
    uint64_t now_ns = clock_ns();
    executor->started_ns = now_ns - lived_ms * 1000000;
    executor_reap(executor, CLI_BROKER << 8, false);
    assert_int_equal(executor->standing, STANDING_WAITING);
    return (executor->start_ns - now_ns) / 1000000;
}

/* How many lines of a log say that. */
static int count_lines(FILE *log, const char *part) {
    char line[600];
    int count = 0;
    rewind(log);
    while (fgets(line, sizeof line, log) != NULL) count += strstr(line, part) != NULL;
    return count;
}

TEST(one_that_the_brokers_refuse_although_it_answers_waits_longer_each_time_and_that_is_told_once) {
    struct executor_rig *rig = *state;
    int saved = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    assert_non_null(log);
    dup2(fileno(log), STDERR_FILENO);
    log_init(LOG_WARN, LOG_TEXT);
    uint64_t waits_ms[12];
    for (int i = 0; i < 12; i++) waits_ms[i] = refuse_after(rig, 20000);
    uint64_t later_ms = refuse_after(rig, 600000);
    log_init(LOG_OFF, LOG_TEXT);
    dup2(saved, STDERR_FILENO);
    close(saved);
    for (int i = 1; i < 12; i++) assert_true(waits_ms[i] > waits_ms[i - 1] || waits_ms[i] >= 29000);
    assert_true(waits_ms[11] >= 29000);
    assert_true(later_ms < 1000);
    assert_int_equal(count_lines(log, "kafka.instance_id"), 1);
    fclose(log);
}

TEST(a_thread_that_hung_is_the_cause_only_where_it_is_evidence) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    for (int is_evidence = 0; is_evidence < 2; is_evidence++) {
        state_close(begin_life(rig));
        executor->stall =
            (struct state_stall){.name = "lane 0", .for_ns = 1, .is_evidence = is_evidence};
        executor->is_stalled = true;
        executor_kill(executor, KILLED_NS);
        int status;
        assert_int_equal(waitpid(executor->pid, &status, 0), executor->pid);
        executor_reap(executor, status, false);
        assert_int_equal(executor->deaths_of[STATE_DEATH_OWN], 1);
        assert_int_equal(executor->deaths_of[STATE_DEATH_STALL], is_evidence);
    }
}

/* What the log says of a batch of the lane that does not end, and of nothing else. */
static void assert_logs_of_hang(struct executor_rig *rig, uint32_t lane, const char *named) {
    struct executor *executor = &rig->executor;
    struct state *state = begin_life(rig);
    int status;
    state_launch(state, lane, 0, 1, UINT64_MAX, 1);
    state_close(state);
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(log);
    dup2(fileno(log), STDERR_FILENO);
    log_init(LOG_WARN, LOG_TEXT);
    for (int i = 0; i < 100 && executor->standing == STANDING_RUNNING; i++)
        executor_tend(executor, clock_ns(), false);
    bool is_killed = executor->standing == STANDING_KILLED;
    if (is_killed && waitpid(executor->pid, &status, 0) == executor->pid)
        executor_reap(executor, status, false);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_true(is_killed);
    rewind(log);
    assert_next_line_says(log, named);
    assert_next_line_says(log, ": the executor died: gpu_hang: its batch was on the device");
    fclose(log);
}

TEST(a_batch_that_does_not_end_is_named_by_its_lane) {
    assert_logs_of_hang(*state, 0, ": batch 18446744073709551615 of lane 0 has been on the device");
}

TEST(a_batch_of_the_serial_fallback_that_does_not_end_is_named_by_that) {
    struct executor_rig *rig = *state;
    assert_logs_of_hang(
        rig, rig->settings.lanes, ": the batch of the serial fallback has been on the device");
}

TEST(batches_that_are_late_one_after_the_other_are_none_that_hangs) {
    enum { BATCHES = 100 };
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    struct state *life = begin_life(rig);
    for (uint64_t id = 1; id <= BATCHES; id++) {
        state_launch(life, 0, 0, 1, id, 1);
        executor_tend(executor, clock_ns() + 1000, false);
        assert_int_equal(executor->overdue.batch, id);
        assert_int_equal(executor->standing, STANDING_RUNNING);
    }
    state_close(life);
    kill(executor->pid, SIGKILL);
    assert_int_equal(waitpid(executor->pid, NULL, 0), executor->pid);
}

static char *page_of(const struct executor *executor) {
    char *text;
    size_t size;
    FILE *page = open_memstream(&text, &size);
    assert_non_null(page);
    metrics_page_write(executor, 1, page);
    assert_int_equal(fclose(page), 0);
    return text;
}

/* What the page says of one executor, line by line. */
static void assert_says(const struct executor *executor, const char *line) {
    char *text = page_of(executor);
    if (strstr(text, line) == NULL) fail_msg("no line '%s' in\n%s", line, text);
    free(text);
}

static void assert_says_not(const struct executor *executor, const char *part) {
    char *text = page_of(executor);
    if (strstr(text, part) != NULL) fail_msg("a line '%s' in\n%s", part, text);
    free(text);
}

TEST(metrics_name_the_device_and_why_it_is_given_up) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    assert_says(executor, "gpu_worker_device_healthy{device=\"3\",uuid=\"GPU-3\",reason=\"\"} 1\n");
    executor_tend(executor, KILLED_NS + DIES_WITHIN_NS + 1, false);
    assert_says(
        executor, "gpu_worker_device_healthy{device=\"3\",uuid=\"GPU-3\",reason=\"stuck\"} 0\n");
    executor_reap(executor, SIGKILL, false);
    assert_says(executor, "deaths_total{device=\"3\",uuid=\"GPU-3\",cause=\"unexplained\"} 1\n");
}

TEST(metrics_go_on_counting_while_no_executor_runs) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    executor->board->ledger.program_count = 2;
    snprintf(executor->board->ledger.programs[1].name, LEDGER_NAME_BYTES, "sax\"p\\y\n");
    executor->board->ledger.programs[1].outcomes[ERR_OK] = (1ull << 53) - 1;
    executor->board->ledger.programs[0].outcomes[ERR_BAD_MESSAGE] = 2;
    assert_says(executor,
        "jobs_total{device=\"3\",uuid=\"GPU-3\",program=\"sax\\\"p\\\\y\\n\",code=\"ok\"} "
        "9007199254740991\n");
    assert_says(
        executor, "jobs_total{device=\"3\",uuid=\"GPU-3\",program=\"\",code=\"bad_message\"} 2\n");
    counters_observe(&executor->board->counters, HISTOGRAM_total, 2000000);
    assert_says(executor,
        "job_seconds_bucket{device=\"3\",uuid=\"GPU-3\",stage=\"total\",le=\"0.001\"} 0\n");
    assert_says(executor,
        "job_seconds_bucket{device=\"3\",uuid=\"GPU-3\",stage=\"total\",le=\"0.0025\"} 1\n");
    assert_says(executor, "job_seconds_sum{device=\"3\",uuid=\"GPU-3\",stage=\"total\"} 0.002\n");
}

/* What it says of an executor that is gone would be taken for now. */
TEST(metrics_show_how_things_stand_only_while_somebody_shows_it) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    struct panel_view *view = panel_begin(&executor->board->panel);
    view->shown_ns = clock_ns();
    view->gauges.jobs_in_flight = 7;
    view->totals.of[COUNTER_engine_static_hits] = 5;
    panel_show(&executor->board->panel);
    assert_says_not(executor, "gpu_worker_jobs_in_flight{");
    assert_says(executor, "static_requests_total{device=\"3\",uuid=\"GPU-3\",result=\"hit\"} 5\n");
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, executor_rig_tear_down)
RUN_TESTS(F(a_killed_executor_has_its_time_to_die),
    F(one_that_does_not_die_makes_its_device_unhealthy_for_good),
    F(one_that_nvml_speaks_against_is_never_started),
    F(one_that_hangs_before_its_life_begins_is_killed_and_started_again),
    F(one_that_ended_for_a_reason_that_stays_is_not_started_again),
    F(one_that_lost_what_may_come_back_is_started_again),
    F(one_whose_life_did_not_begin_is_not_started_again),
    F(one_that_the_brokers_refuse_again_and_again_ends_and_blames_no_device),
    F(one_that_the_brokers_refuse_although_it_answers_waits_longer_each_time_and_that_is_told_once),
    F(a_thread_that_hung_is_the_cause_only_where_it_is_evidence),
    F(batches_that_are_late_one_after_the_other_are_none_that_hangs),
    F(one_that_is_stopped_before_its_life_begins_has_left_no_job_undone),
    F(one_that_is_killed_because_it_does_not_stop_is_told),
    F(a_batch_that_does_not_end_is_named_by_its_lane),
    F(a_batch_of_the_serial_fallback_that_does_not_end_is_named_by_that),
    F(metrics_name_the_device_and_why_it_is_given_up),
    F(metrics_go_on_counting_while_no_executor_runs),
    F(metrics_show_how_things_stand_only_while_somebody_shows_it))

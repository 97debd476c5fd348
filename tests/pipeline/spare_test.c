/* A spare in its own process: when its life begins, and what ends it before. */
#include "pipeline/spare.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit.h"
#include "cpu_driver/cpu_driver.h"
#include "pipeline/executor.h"
#include "support/memory_broker.h"
#include "testing.h"

static struct settings settings;
static struct memory_broker broker;
static atomic_bool stop;
static atomic_bool has_begun;
static int ends[2]; /* the supervisor's and the spare's */

static int set_up(void **state) {
    log_init(LOG_OFF, LOG_TEXT);
    settings_init(&settings);
    settings.driver = DRIVER_CPU;
    settings.lanes = 1;
    free(settings.programs.dir);
    settings.programs.dir = strdup(GPU_WORKER_PROGRAMS_DIR);
    memory_broker_init(&broker, NULL, 0);
    atomic_store(&has_begun, false);
    stop = 0;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static int tear_down(void **state) {
    close(ends[0]);
    memory_broker_fini(&broker);
    settings_fini(&settings);
    cpu_driver_reset();
    return 0;
}

static enum err begin(void *context, struct executor_life *ret, struct error *err) {
    atomic_store(&has_begun, true);
    *ret = (struct executor_life){.source = memory_source(&broker), .sink = memory_sink(&broker)};
    return ERR_OK;
}

static void leave(const struct error *err) {
    _exit(CLI_DEVICE);
}

/* NULL: it has failed. */
static void *run_spare(void *context) {
    const struct executor_options options = {.settings = &settings,
        .begin = begin,
        .spare_fd = ends[1],
        .on_lost = leave,
        .stop = &stop};
    struct executor_summary summary;
    struct error err;
    return executor_run(&options, &summary, &err) == ERR_OK ? &settings : NULL;
}

static uint64_t count_looks(void) {
    return cpu_driver_counters().calls[CPU_stream_synchronize];
}

/* The test asserts only once the thread has ended, which could end the process, and well. */
TEST(its_life_begins_when_it_is_told_and_not_before) {
    pthread_t thread;
    char byte;
    assert_int_equal(pthread_create(&thread, NULL, run_spare, NULL), 0);
    ssize_t said = read(ends[0], &byte, 1);
    uint64_t pinned_bytes = cpu_driver_counters().pinned_bytes_live, looks = count_looks();
    while (count_looks() < looks + 2 && !atomic_load(&has_begun)) sched_yield();
    bool had_begun = atomic_load(&has_begun);
    (void)!send(ends[0], "", 1, MSG_NOSIGNAL);
    void *ended_well;
    assert_int_equal(pthread_join(thread, &ended_well), 0);
    assert_non_null(ended_well);
    assert_int_equal(said, 1);
    assert_true(pinned_bytes >= 2ull * settings.lane_depth * settings.lane_slab_bytes);
    assert_false(had_begun);
    assert_true(atomic_load(&has_begun));
    assert_int_equal(read(ends[0], &byte, 1), 0); /* it has closed its end */
}

/* The exit code of a spare in a process of its own. */
static int end_of_spare(bool is_alone) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        (void)run_spare(NULL);
        _exit(CLI_FAILED); /* it had a life, or did not leave at once */
    }
    close(ends[1]);
    if (is_alone) assert_return_code(shutdown(ends[0], SHUT_WR), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(a_supervisor_that_is_gone_ends_it) {
    assert_int_equal(end_of_spare(true), CLI_OK);
}

TEST(a_stop_ends_it) {
    stop = 1;
    assert_int_equal(end_of_spare(false), CLI_OK);
}

/* Calls of the driver may hang from then on. */
TEST(one_whose_context_is_lost_leaves_before_anything_else_is_tried) {
    free(settings.cpu_driver.faults);
    settings.cpu_driver.faults = strdup("cuStreamSynchronize:illegal_address@1");
    assert_int_equal(end_of_spare(false), CLI_DEVICE);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(its_life_begins_when_it_is_told_and_not_before), F(a_supervisor_that_is_gone_ends_it),
    F(a_stop_ends_it), F(one_whose_context_is_lost_leaves_before_anything_else_is_tried))

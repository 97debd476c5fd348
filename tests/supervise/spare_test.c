/* What the supervisor decides of a spare, without waiting for it. */
#include "supervise/spare.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "supervise/executors.h"
#include "support/executor_rig.h"
#include "testing.h"

#define LATER_NS (UINT64_MAX / 2)
#define LIMIT_NS 1000000000u
#define EXITED(code) ((code) << 8) /* as wait statuses say it */

static struct executor *executor_of(void **state) {
    return &((struct executor_rig *)*state)->executor;
}

/* A process that does nothing, and the test's end of the socket to it. */
static int add_spare(struct spare *spare) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        for (;;) pause();
    }
    *spare = (struct spare){.pid = pid, .fd = ends[0], .life = 7, .started_ns = clock_ns()};
    return ends[1];
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int set_up(void **state) {
    (void)executor_rig_set_up(state);
    struct executor *executor = executor_of(state);
    executor->standing = STANDING_WAITING;
    executor->start_ns = LATER_NS;
    return 0;
}

TEST(one_that_says_so_is_ready) {
    struct spare *spare = &executor_of(state)->spare;
    int fd = add_spare(spare);
    spare_tend(spare, clock_ns(), LIMIT_NS);
    assert_false(spare->is_ready);
    assert_int_equal(write(fd, "", 1), 1);
    spare_tend(spare, clock_ns(), LIMIT_NS);
    assert_true(spare->is_ready);
    end(spare->pid);
    close(fd);
}

TEST(one_that_is_not_ready_in_time_is_killed) {
    struct spare *spare = &executor_of(state)->spare;
    int fd = add_spare(spare), status;
    spare_tend(spare, spare->started_ns + LIMIT_NS, LIMIT_NS);
    assert_int_equal(waitpid(spare->pid, &status, WNOHANG), 0);
    spare_tend(spare, spare->started_ns + LIMIT_NS + 1, LIMIT_NS);
    assert_int_equal(waitpid(spare->pid, &status, 0), spare->pid);
    assert_true(WIFSIGNALED(status));
    spare_reap(spare);
    assert_int_equal(spare->deaths_total, 1);
    close(fd);
}

/* A process that hangs in the driver outlives the signal for a while. */
TEST(one_that_was_killed_because_it_hangs_takes_nothing_over) {
    struct executor *executor = executor_of(state);
    struct spare *spare = &executor->spare;
    int fd = add_spare(spare);
    spare_tend(spare, spare->started_ns + LIMIT_NS + 1, LIMIT_NS);
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_WAITING);
    end(spare->pid);
    close(fd);
}

TEST(one_that_cannot_be_started_is_tried_again_later_and_leaves_nothing) {
    struct spare *spare = &executor_of(state)->spare;
    struct launch launch = {.spare_fd = -1};
    struct rlimit before, none;
    struct error err;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_max = before.rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t now_ns = clock_ns();
    enum err code = spare_start(spare, &launch, &err);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, ERR_IO);
    assert_int_equal(err.native, EMFILE);
    assert_int_equal(spare->pid, 0);
    assert_true(spare->start_ns > now_ns);
}

TEST(it_becomes_the_executor_without_a_delay) {
    struct executor *executor = executor_of(state);
    int fd = add_spare(&executor->spare);
    pid_t pid = executor->spare.pid;
    executor->spare.deaths = 3;
    char byte;
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_RUNNING);
    assert_int_equal(executor->pid, pid);
    assert_int_equal(executor->life, 7);
    assert_int_equal(executor->spare.pid, 0);
    assert_int_equal(executor->spare.deaths, 0); /* in a row */
    assert_int_equal(read(fd, &byte, 1), 1);
    end(pid);
    close(fd);
}

TEST(one_that_has_just_died_takes_nothing_over) {
    struct executor *executor = executor_of(state);
    int fd = add_spare(&executor->spare);
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0); /* as the end of the process does */
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_WAITING);
    end(executor->spare.pid);
    close(fd);
}

TEST(one_that_was_dropped_takes_nothing_over) {
    struct executor *executor = executor_of(state);
    int fd = add_spare(&executor->spare);
    spare_drop(&executor->spare);
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_WAITING);
    end(executor->spare.pid);
    close(fd);
}

/* The spare's executor, or NVML, has told of the device while it waited. */
TEST(one_of_a_device_that_is_unhealthy_takes_nothing_over_and_ends) {
    struct executor_rig *rig = *state;
    struct executor *executor = &rig->executor;
    int fd = add_spare(&executor->spare), status;
    char byte;
    executor->start_ns = 0;
    snprintf(rig->device.fault, sizeof rig->device.fault, "it has fallen off the bus");
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
    assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0); /* it was not told to begin */
    executor_tend(executor, clock_ns(), false);
    assert_int_equal(waitpid(executor->spare.pid, &status, 0), executor->spare.pid);
    assert_true(WIFSIGNALED(status));
    close(fd);
}

TEST(only_one_that_has_died_is_reaped) {
    struct executor *executor = executor_of(state);
    int fd = add_spare(&executor->spare);
    pid_t pid = executor->spare.pid;
    siginfo_t ended;
    executor_reap_spare(executor);
    assert_int_equal(executor->spare.pid, pid);
    kill(pid, SIGKILL);
    assert_return_code(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    executor_reap_spare(executor);
    assert_int_equal(executor->spare.pid, 0);
    executor_reap_spare(executor);
    assert_int_equal(executor->spare.deaths_total, 1);
    close(fd);
}

TEST(one_that_dies_before_its_life_begins_counts_against_nobody) {
    struct executor *executor = executor_of(state);
    executor->standing = STANDING_RUNNING;
    executor->was_spare = true;
    executor_reap(executor, EXITED(CLI_DEVICE), false);
    assert_int_equal(executor->standing, STANDING_WAITING);
    assert_true(executor->start_ns <= clock_ns());
    assert_int_equal(executor->deaths, 0);
    for (int i = 0; i < STATE_DEATH_KINDS; i++) assert_int_equal(executor->deaths_of[i], 0);
    assert_int_equal(executor->spare.deaths_total, 1);
}

TEST(the_next_one_comes_after_growing_delays_or_at_once_where_it_was_dropped) {
    struct spare *spare = &executor_of(state)->spare;
    uint64_t delays_ns[2];
    for (int i = 0; i < 2; i++) {
        uint64_t before_ns = clock_ns();
        *spare = (struct spare){.fd = dup(0), .deaths = (uint32_t)i};
        spare_reap(spare);
        delays_ns[i] = spare->start_ns - before_ns;
    }
    assert_true(delays_ns[0] >= 100000000 && delays_ns[1] >= 200000000);
    *spare = (struct spare){.fd = dup(0), .is_dropped = true};
    spare_reap(spare);
    assert_int_equal(spare->start_ns, 0);
    assert_int_equal(spare->deaths_total, 0);
}

TEST(one_that_dies_whenever_it_is_ready_is_not_started_at_full_speed) {
    struct spare *spare = &executor_of(state)->spare;
    int fd = add_spare(spare);
    spare->deaths = 6;
    assert_int_equal(write(fd, "", 1), 1);
    spare_tend(spare, clock_ns(), LIMIT_NS);
    end(spare->pid);
    uint64_t before_ns = clock_ns();
    spare_reap(spare);
    assert_true(spare->start_ns - before_ns >= 64 * 100000000ull);
    close(fd);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, executor_rig_tear_down)
RUN_TESTS(F(one_that_says_so_is_ready), F(one_that_is_not_ready_in_time_is_killed),
    F(one_that_cannot_be_started_is_tried_again_later_and_leaves_nothing),
    F(one_that_was_killed_because_it_hangs_takes_nothing_over),
    F(it_becomes_the_executor_without_a_delay), F(one_that_has_just_died_takes_nothing_over),
    F(one_that_was_dropped_takes_nothing_over),
    F(one_of_a_device_that_is_unhealthy_takes_nothing_over_and_ends),
    F(only_one_that_has_died_is_reaped),
    F(one_that_dies_before_its_life_begins_counts_against_nobody),
    F(the_next_one_comes_after_growing_delays_or_at_once_where_it_was_dropped),
    F(one_that_dies_whenever_it_is_ready_is_not_started_at_full_speed))

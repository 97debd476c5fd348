/* A state file that was left by a process of the same number. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "state/state.h"
#include "supervise/executors.h"
#include "support/executor_rig.h"
#include "testing.h"

enum { LOOKS = 30, LAST_LIFE = 7, THIS_LIFE = 8 };

/* The life before, whose batch never ended: of the process that the executor is now. */
static _Noreturn void leave_a_hang(const char *path, int told) {
    const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 1};
    const struct position position = {.topic = "jobs", .partition = 0, .offset = 5};
    struct error set_aside, err;
    struct state *state;
    signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
    if (state_open(path, 0, &state, &set_aside, &err) != ERR_OK) _exit(1);
    state_name_life(state, LAST_LIFE);
    if (state_begin(state, &shape, 3, "GPU-3", &err) != ERR_OK) _exit(1);
    state_note_job(state, 0, 0, 0, &position, 1);
    state_launch(state, 0, 0, 1, 1, 1); /* overdue after a nanosecond */
    state_close(state);
    (void)!write(told, "", 1);
    for (;;) pause();
}

TEST(a_hang_of_another_life_ends_nobody_and_convicts_nobody) {
    struct executor *executor = &((struct executor_rig *)*state)->executor;
    int ends[2], status;
    char byte;
    assert_return_code(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) leave_a_hang(executor->state_path, ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    executor->pid = pid;
    executor->life = THIS_LIFE;
    executor->standing = STANDING_RUNNING;
    executor->started_ns = clock_ns();
    for (int i = 0; i < LOOKS; i++) executor_tend(executor, clock_ns(), false);
    assert_int_equal(executor->standing, STANDING_RUNNING);

    assert_return_code(kill(pid, SIGSEGV), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    executor_reap(executor, status, false);
    struct state *after = executor_rig_open_state(*state);
    assert_int_equal(state_death(after).kind, STATE_DEATH_NONE);
    state_close(after);
    close(ends[0]);
    close(ends[1]);
}

RUN_TESTS(cmocka_unit_test_setup_teardown(a_hang_of_another_life_ends_nobody_and_convicts_nobody,
    executor_rig_set_up, executor_rig_tear_down))

/* What an executor is started with; this test is itself the process that is started. */
#include "supervise/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

enum { TEXT_BYTES = 512 };

static const char *const more[] = {"--driver", "cpu", "--jobs", "jobs", NULL};

/* ---- the executor ---- */

/* Writes its arguments to the descriptor that one of them names: it is open here. */
static int be_executor(int count, char **arguments, const char *named) {
    for (int i = 1; i + 1 < count; i++) {
        if (strcmp(arguments[i], named) != 0) continue;
        for (int k = 1; k < count; k++) dprintf(atoi(arguments[i + 1]), "%s ", arguments[k]);
    }
    return 0;
}

/* ---- the tests ---- */

/* What an executor writes to the descriptor that `named` names. */
static void launch(struct launch *launch, const char *named, char ret[static TEXT_BYTES]) {
    struct error err;
    pid_t pid;
    int ends[2], status;
    size_t size = 0;
    assert_return_code(pipe2(ends, O_CLOEXEC), 0);
    bool is_spare = strcmp(named, "--spare") == 0;
    *(is_spare ? &launch->spare_fd : &launch->board_fd) = ends[1];
    assert_return_code(setenv("LAUNCH_TEST_NAMED", named, 1), 0);
    assert_int_equal(launch_executor(launch, &pid, &err), ERR_OK);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], ret + size, TEXT_BYTES - 1 - size)) > 0;)
        size += (size_t)got;
    ret[size] = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ends[0]);
}

TEST(an_executor_is_told_which_life_of_which_device_it_is_and_has_its_board) {
    const struct supervise_options options = {.config = "worker.yaml", .arguments = more};
    struct launch launched = {
        .options = &options, .device = 3, .state_path = "state-3", .life = 77, .spare_fd = -1};
    char said[TEXT_BYTES], expected[TEXT_BYTES];
    launch(&launched, "--board", said);
    snprintf(expected, sizeof expected,
        "run --no-supervisor --device 3 --state state-3 --life 77 --board %d --config worker.yaml "
        "--driver cpu --jobs jobs ",
        launched.board_fd);
    assert_string_equal(said, expected);
}

TEST(a_spare_has_its_socket_besides) {
    const struct supervise_options options = {.arguments = more};
    struct launch launched = {
        .options = &options, .state_path = "state-0", .life = 5, .board_fd = STDERR_FILENO};
    char said[TEXT_BYTES], expected[TEXT_BYTES];
    launch(&launched, "--spare", said);
    snprintf(expected, sizeof expected,
        "run --no-supervisor --device 0 --state state-0 --life 5 --board %d --spare %d --driver "
        "cpu --jobs jobs ",
        STDERR_FILENO, launched.spare_fd);
    assert_string_equal(said, expected);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        T(an_executor_is_told_which_life_of_which_device_it_is_and_has_its_board),
        T(a_spare_has_its_socket_besides)};
    const char *named = getenv("LAUNCH_TEST_NAMED");
    if (named != NULL) return be_executor(count, arguments, named);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

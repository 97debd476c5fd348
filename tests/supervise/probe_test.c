/* Which devices the supervisor finds, with this test itself as the child that lists them. */
#include "supervise/probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "settings/settings.h"
#include "testing.h"

static const char BEHAVIOUR[] = "PROBE_TEST_CHILD";

/* ---- the child ---- */

static void list_devices(void) {
    printf("0\tGPU-0\t-\tone\n1\tGPU-1\tit has fallen off the bus\tanother\n");
    fflush(stdout);
}

/* A process whose end its parent does not see, as one that hangs in the driver: it is traced, and
 * whoever traces it does not look. Its standard input ends with the test. */
static void become_undead(void) {
    int ready[2], attached[2];
    char byte;
    if (pipe(ready) != 0 || pipe(attached) != 0) abort();
    pid_t child = getpid(), tracer = fork();
    if (tracer == 0) {
        close(STDOUT_FILENO);
        if (read(ready[0], &byte, 1) != 1 || ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) abort();
        if (write(attached[1], "", 1) != 1) abort();
        (void)!read(STDIN_FILENO, &byte, 1);
        _exit(0);
    }
    (void)prctl(PR_SET_PTRACER, tracer); /* fails where it is not needed */
    if (write(ready[1], "", 1) != 1 || read(attached[0], &byte, 1) != 1) abort();
}

static int be_child(void) {
    bool is_undead = strcmp(getenv(BEHAVIOUR), "undead") == 0;
    if (is_undead) become_undead();
    list_devices();
    if (is_undead) {
        close(STDOUT_FILENO);
        for (;;) pause();
    }
    return 0;
}

/* ---- the tests ---- */

static enum err probe(
    const char *behaviour, struct probed_device *ret, size_t *count, struct error *err) {
    struct settings settings;
    int child_exit_code;
    settings_init(&settings);
    assert_return_code(setenv(BEHAVIOUR, behaviour, 1), 0);
    enum err code =
        probe_devices(&settings, NULL, ret, PROBED_DEVICES_MAX, count, &child_exit_code, err);
    settings_fini(&settings);
    return code;
}

TEST(devices_are_those_that_the_child_lists_with_their_faults) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    struct error err;
    size_t count;
    assert_int_equal(probe("lists", devices, &count, &err), ERR_OK);
    assert_int_equal(count, 2);
    assert_string_equal(devices[0].uuid, "GPU-0");
    assert_string_equal(devices[0].fault, "");
    assert_int_equal(devices[1].index, 1);
    assert_string_equal(devices[1].fault, "it has fallen off the bus");
}

TEST(a_child_that_does_not_die_is_left_and_the_error_says_so) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    struct error err;
    size_t count;
    int ends[2];
    assert_return_code(pipe2(ends, O_CLOEXEC), 0);
    assert_return_code(dup2(ends[0], STDIN_FILENO), 0);
    enum err code = probe("undead", devices, &count, &err);
    assert_return_code(close(ends[1]), 0);
    assert_return_code(wait(NULL), 0);
    close(ends[0]);
    assert_int_equal(code, ERR_NO_DEVICE);
    assert_non_null(strstr(err.message, "does not die"));
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {T(devices_are_those_that_the_child_lists_with_their_faults),
        T(a_child_that_does_not_die_is_left_and_the_error_says_so)};
    if (count > 1 && strcmp(arguments[1], "devices") == 0) return be_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

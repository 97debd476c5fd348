/* Children of gpu-worker, with this test itself as the child. */
#include "process/child.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

static void ignore_it(int number) {}

/* A parent that waits by sigsuspend() holds SIGTERM back, and has a handler of its own for it. */
TEST(a_child_that_is_told_to_end_before_it_has_become_one_ends) {
    enum { TRIES = 20 };
    static const char *const arguments[] = {"goes-on", NULL};
    const struct sigaction action = {.sa_handler = ignore_it};
    struct error err;
    sigset_t held, before;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    assert_return_code(sigaction(SIGTERM, &action, NULL), 0);
    assert_return_code(sigprocmask(SIG_BLOCK, &held, &before), 0);
    for (int i = 0; i < TRIES; i++) {
        pid_t pid;
        int status;
        assert_int_equal(child_start(arguments, -1, NULL, &pid, &err), ERR_OK);
        assert_return_code(kill(pid, SIGTERM), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGTERM);
    }
    assert_return_code(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* Waits for the signal; one that was swallowed shows as SIGALRM. */
static int go_on(void) {
    enum { LOST_S = 30 };
    alarm(LOST_S);
    return pause();
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        T(a_child_that_is_told_to_end_before_it_has_become_one_ends)};
    if (count > 1 && strcmp(arguments[1], "goes-on") == 0) return go_on();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

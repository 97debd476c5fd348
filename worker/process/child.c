#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ARGUMENTS_MAX = 32, EXIT_NO_EXEC = 127, LOOK_MS = 10 };

static bool keep(const int *kept) {
    for (; kept != NULL && *kept >= 0; kept++)
        if (fcntl(*kept, F_SETFD, 0) != 0) return false;
    return true;
}

/*
 * Runs in the child. Any failure ends the child, and the parent sees that it died before its life
 * began.
 */
static _Noreturn void become(
    const char *const *arguments, int output, const int *kept, pid_t parent) {
    const char *all[ARGUMENTS_MAX + 2] = {"gpu-worker"};
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    /* A terminal sends its signals to all processes; only the parent is to act on them. */
    signal(SIGINT, SIG_IGN);
    /* The parent's handler would swallow one that comes before execv(). */
    signal(SIGTERM, SIG_DFL);
    for (size_t i = 0; arguments[i] != NULL && i < ARGUMENTS_MAX; i++) all[i + 1] = arguments[i];
    /* Only the parent talks to systemd. */
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    /* The parent may have ended before the kernel was asked to report its end. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
        sigprocmask(SIG_SETMASK, &hangup, NULL) == 0 &&
        (output < 0 || dup2(output, STDOUT_FILENO) >= 0) && keep(kept))
        execv("/proc/self/exe", (char *const *)(uintptr_t)all); /* execv() changes none of them */
    _exit(EXIT_NO_EXEC);
}

enum err child_start(
    const char *const *arguments, int output, const int *kept, pid_t *ret, struct error *err) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(arguments, output, kept, parent);
    if (pid < 0) {
        int native = errno;
        return error_set(err, ERR_IO, native, "raise the limit on processes",
            "cannot start a process: %s", strerror(native));
    }
    *ret = pid;
    return ERR_OK;
}

bool child_end(pid_t pid, uint32_t timeout_ms, int *status) {
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    uint64_t until_ns = clock_ns_in(timeout_ms);
    kill(pid, SIGKILL);
    while (waitpid(pid, status, WNOHANG) != pid) {
        if (clock_ns() >= until_ns) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

#include "process/inherited.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The first files that we open would get the numbers of streams that are closed, and log lines
 * would be written into them. */
static bool fill_closed_streams(void) {
    static const int refusing[] = {
        [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", refusing[fd]) != fd) return false;
    return true;
}

/* With SIGCHLD ignored, the kernel tells nobody how a child ended; a SIGTERM that is ignored or
 * blocked ends nothing; a SIGXFSZ ends a process that could report a write that failed. */
static void reset_signals(void) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    int is_hangup_held = sigismember(&blocked, SIGHUP);
    sigemptyset(&blocked);
    if (is_hangup_held == 1) sigaddset(&blocked, SIGHUP);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

bool inherited_mend(void) {
    if (!fill_closed_streams()) return false;
    reset_signals();
    /* An executor was started from /proc/self/exe: ps, the kernel's log and core dumps would call
     * it by that. */
    prctl(PR_SET_NAME, "gpu-worker");
    return true;
}

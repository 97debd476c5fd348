#include "supervise/spare.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervise/deaths.h"

static void back_off(struct spare *spare) {
    spare->deaths++;
    spare->start_ns = clock_ns_in(death_back_off_ms(spare->deaths));
}

static enum err connect_to(struct launch *launch, int *ret, struct error *err) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        int native = errno;
        return error_set(err, ERR_IO, native, "raise the limit on open files",
            "cannot make a socket: %s", strerror(native));
    }
    *ret = ends[0];
    launch->spare_fd = ends[1];
    return ERR_OK;
}

enum err spare_start(struct spare *spare, struct launch *launch, struct error *err) {
    pid_t pid;
    int fd = -1;
    enum err code = connect_to(launch, &fd, err);
    if (code == ERR_OK) {
        code = launch_executor(launch, &pid, err);
        close(launch->spare_fd);
    }
    if (code != ERR_OK) {
        if (fd >= 0) close(fd);
        back_off(spare);
        return code;
    }
    spare->pid = pid;
    spare->fd = fd;
    spare->life = launch->life;
    spare->started_ns = clock_ns();
    spare->is_ready = spare->is_hung = spare->is_dropped = false;
    return ERR_OK;
}

/* A spare that was killed may not be dead yet. */
static bool is_killed(const struct spare *spare) {
    return spare->is_hung || spare->is_dropped;
}

void spare_tend(struct spare *spare, uint64_t now_ns, uint64_t limit_ns) {
    char byte;
    if (spare->pid == 0 || spare->is_ready || is_killed(spare)) return;
    spare->is_ready = recv(spare->fd, &byte, 1, MSG_DONTWAIT) == 1;
    spare->is_hung = !spare->is_ready && now_ns > spare->started_ns + limit_ns;
    if (spare->is_hung) kill(spare->pid, SIGKILL);
}

/* The process has ended, or it is somebody else's. */
static void forget(struct spare *spare) {
    close(spare->fd);
    spare->pid = 0;
    spare->is_ready = false;
}

pid_t spare_begin(struct spare *spare) {
    pid_t pid = spare->pid;
    if (pid == 0 || is_killed(spare)) return 0;
    if (send(spare->fd, "", 1, MSG_NOSIGNAL) != 1) return 0; /* it has died, and will be reaped */
    forget(spare);
    spare->deaths = 0;
    return pid;
}

void spare_drop(struct spare *spare) {
    if (spare->pid == 0 || spare->is_dropped) return;
    spare->is_dropped = true;
    kill(spare->pid, SIGKILL);
}

void spare_reap(struct spare *spare) {
    forget(spare);
    if (spare->is_dropped) return;
    spare->deaths_total++;
    back_off(spare);
}

#include "supervise/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "supervise/executors.h"

enum {
    LOOK_MS = 100,
    STOP_MARGIN_MS = 5000 /* beyond drain_timeout_ms, for leaving the group and closing files */
};

struct supervisor {
    const struct supervise_options *options;
    struct executor *executors;
    size_t count;
    sigset_t signals;
    uint64_t stop_ns; /* when everything was asked to stop; 0: it was not */
};

/* They wait until they are asked for, so that none comes between two looks. */
static void block_signals(struct supervisor *supervisor) {
    sigemptyset(&supervisor->signals);
    sigaddset(&supervisor->signals, SIGCHLD);
    sigaddset(&supervisor->signals, SIGTERM);
    sigaddset(&supervisor->signals, SIGINT);
    sigprocmask(SIG_BLOCK, &supervisor->signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* a log that nobody reads ends nothing */
}

static void stop_all(struct supervisor *supervisor) {
    if (supervisor->stop_ns != 0) return;
    supervisor->stop_ns = clock_ns();
    for (size_t i = 0; i < supervisor->count; i++) executor_stop(&supervisor->executors[i]);
}

static void reap_all(struct supervisor *supervisor) {
    int status;
    for (size_t i = 0; i < supervisor->count; i++) {
        struct executor *executor = &supervisor->executors[i];
        if (executor->pid > 0 && waitpid(executor->pid, &status, WNOHANG) == executor->pid)
            executor_reap(executor, status, supervisor->stop_ns != 0);
    }
}

/* True while there is an executor to look after. */
static bool tend_all(struct supervisor *supervisor) {
    uint64_t now_ns = clock_ns();
    uint64_t limit_ms = supervisor->options->settings->drain_timeout_ms + STOP_MARGIN_MS;
    bool is_late = supervisor->stop_ns != 0 && now_ns - supervisor->stop_ns > limit_ms * 1000000;
    bool is_any = false;
    for (size_t i = 0; i < supervisor->count; i++) {
        struct executor *executor = &supervisor->executors[i];
        if (is_late) executor_kill(executor, now_ns);
        executor_tend(executor, now_ns, supervisor->stop_ns != 0);
        is_any = is_any || !executor_is_over(executor);
        /* What one decided holds for all: they share the configuration. */
        if (executor->standing == STANDING_ENDED && executor->exit_code != CLI_OK)
            stop_all(supervisor);
    }
    return is_any;
}

static void wait_for_signal(struct supervisor *supervisor) {
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    int number = sigtimedwait(&supervisor->signals, NULL, &look);
    if (number == SIGTERM || number == SIGINT) stop_all(supervisor);
}

/* Of the first that failed; that of devices only where no executor ended well. */
static int exit_code(const struct supervisor *supervisor) {
    int ret = CLI_DEVICE;
    for (size_t i = 0; i < supervisor->count; i++) {
        const struct executor *executor = &supervisor->executors[i];
        if (executor->standing != STANDING_ENDED) continue;
        if (executor->exit_code != CLI_OK) return executor->exit_code;
        ret = CLI_OK;
    }
    return ret;
}

static enum err init(
    struct supervisor *supervisor, const struct supervise_options *options, struct error *err) {
    *supervisor = (struct supervisor){.options = options};
    supervisor->executors = calloc(options->device_count, sizeof supervisor->executors[0]);
    if (supervisor->executors == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory to supervise");
    enum err code = ERR_OK;
    for (; supervisor->count < options->device_count && code == ERR_OK; supervisor->count++)
        code = executor_init(&supervisor->executors[supervisor->count], options,
            &options->devices[supervisor->count], err);
    return code;
}

int supervise_run(const struct supervise_options *options) {
    struct supervisor supervisor;
    struct error err;
    int ret = CLI_FAILED;
    if (init(&supervisor, options, &err) == ERR_OK) {
        block_signals(&supervisor);
        while (tend_all(&supervisor)) {
            wait_for_signal(&supervisor);
            reap_all(&supervisor);
        }
        ret = exit_code(&supervisor);
    } else {
        log_error(LOG_ERROR, "supervisor", &err);
    }
    for (size_t i = 0; i < supervisor.count; i++) executor_fini(&supervisor.executors[i]);
    free(supervisor.executors);
    return ret;
}

#include "supervise/supervise.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "base/signals.h"
#include "http/server.h"
#include "supervise/executors.h"
#include "supervise/health.h"
#include "supervise/metrics_page.h"
#include "supervise/notify.h"
#include "supervise/page.h"
#include "supervise/progress.h"
#include "supervise/status.h"

enum {
    LOOK_MS = 100,
    STOP_MARGIN_MS = 5000 /* beyond drain_timeout_ms, for leaving the group and closing files */
};

static const int stop_signals[] = {SIGTERM, SIGINT};
enum { STOP_SIGNALS = sizeof stop_signals / sizeof stop_signals[0] };

struct supervisor {
    const struct supervise_options *options;
    struct executor *executors;
    size_t count;
    int signal_fd;
    struct http *http;     /* NULL: it does not listen */
    struct notify *notify; /* NULL: systemd did not ask */
    uint64_t stop_ns;      /* when everything was asked to stop; 0: not yet */
    bool is_asked;         /* a signal asked for the stop */
    bool is_reload_refused;
    char policy[PAGE_POLICY_BYTES]; /* of what http serves */
};

/* Signals are blocked and read from a descriptor, so that none is missed between two looks. */
static enum err take_signals(struct supervisor *supervisor, struct error *err) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGHUP);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (!signal_is_ignored(stop_signals[i])) sigaddset(&signals, stop_signals[i]);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed log must not end the worker */
    supervisor->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (supervisor->signal_fd >= 0) return ERR_OK;
    int native = errno;
    return error_set(err, ERR_IO, native, "raise the limit on open files",
        "cannot wait for signals: %s", strerror(native));
}

static void kill_all(struct supervisor *supervisor) {
    for (size_t i = 0; i < supervisor->count; i++)
        executor_kill(&supervisor->executors[i], clock_ns());
}

static void stop_all(struct supervisor *supervisor) {
    if (supervisor->stop_ns != 0) return;
    supervisor->stop_ns = clock_ns();
    notify_stopping(supervisor->notify);
    for (size_t i = 0; i < supervisor->count; i++) executor_stop(&supervisor->executors[i]);
}

static void reap_all(struct supervisor *supervisor) {
    int status;
    for (size_t i = 0; i < supervisor->count; i++) {
        struct executor *executor = &supervisor->executors[i];
        executor_reap_spare(executor);
        if (executor->pid > 0 && waitpid(executor->pid, &status, WNOHANG) == executor->pid)
            executor_reap(executor, status, supervisor->stop_ns != 0);
    }
}

static void kill_late(struct executor *executor, uint64_t now_ns, uint64_t limit_ms) {
    if (executor->standing != STANDING_RUNNING) return;
    log_line(LOG_WARN,
        "%s: the executor has not ended %" PRIu64
        " ms after the signal to stop: killing it; see whether brokers answer, or raise "
        "drain_timeout_ms",
        executor->name, limit_ms);
    executor_kill(executor, now_ns);
}

/* True while any executor is left. */
static bool tend_all(struct supervisor *supervisor) {
    uint64_t now_ns = clock_ns();
    uint64_t limit_ms = supervisor->options->settings->drain_timeout_ms + STOP_MARGIN_MS;
    bool is_late = supervisor->stop_ns != 0 && now_ns - supervisor->stop_ns > limit_ms * 1000000;
    bool is_any = false;
    for (size_t i = 0; i < supervisor->count; i++) {
        struct executor *executor = &supervisor->executors[i];
        if (is_late) kill_late(executor, now_ns, limit_ms);
        executor_tend(executor, now_ns, supervisor->stop_ns != 0);
        is_any = is_any || !executor_is_over(executor);
        if (executor->watched != NULL) notify_ready(supervisor->notify);
        /* If one ended itself, the others would too: they share the configuration. */
        if (executor->standing == STANDING_ENDED && executor->exit_code != CLI_OK)
            stop_all(supervisor);
    }
    return is_any;
}

/*
 * The supervisor reloads first, so that a mistake gives one log line, and executors that start
 * later use the same configuration.
 */
static void reload(struct supervisor *supervisor) {
    const struct supervise_options *options = supervisor->options;
    struct error err;
    if (supervisor->stop_ns != 0) {
        log_line(LOG_INFO, "SIGHUP: nothing is reloaded, because the worker is stopping");
        return;
    }
    notify_reloading(supervisor->notify);
    supervisor->is_reload_refused = options->reload(options->context, &err) != ERR_OK;
    if (!supervisor->is_reload_refused) {
        log_event(
            LOG_INFO, LOG_EVENT("reloaded"), "the configuration and the programs were read again");
        for (size_t i = 0; i < supervisor->count; i++) executor_reload(&supervisor->executors[i]);
    } else {
        log_error_event(
            LOG_ERROR, LOG_EVENT("reload_refused"), "not reloaded, nothing has changed", &err);
    }
    notify_reloaded(supervisor->notify);
}

static void read_signals(struct supervisor *supervisor) {
    struct signalfd_siginfo info;
    while (read(supervisor->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP) reload(supervisor);
        if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGHUP) continue;
        /* A second signal means: do not wait for jobs. */
        if (supervisor->is_asked) kill_all(supervisor);
        supervisor->is_asked = true;
        stop_all(supervisor);
    }
}

/* Serves HTTP until a signal arrives or it is time to look again. */
static void wait_for_signal(struct supervisor *supervisor) {
    struct pollfd fds[2] = {{.fd = supervisor->signal_fd, .events = POLLIN},
        {.fd = http_fd(supervisor->http), .events = POLLIN}}; /* poll() skips -1 */
    uint64_t until_ns = clock_ns() + LOOK_MS * 1000000ull;
    for (uint64_t now_ns; fds[0].revents == 0 && (now_ns = clock_ns()) < until_ns;) {
        poll(fds, 2, (int)((until_ns - now_ns) / 1000000) + 1);
        http_serve(supervisor->http);
    }
    read_signals(supervisor);
}

/* ---- what it serves ---- */

static bool write_metrics(void *context, bool is_verbose, FILE *page) {
    const struct supervisor *supervisor = context;
    metrics_page_write(supervisor->executors, supervisor->count, page);
    return true;
}

/*
 * The supervisor's loop answers. If it hangs, there is no answer, and a restart helps. Whatever
 * goes wrong elsewhere, the supervisor corrects, or the process ends.
 */
static bool write_liveness(void *context, bool is_verbose, FILE *page) {
    fprintf(page, "live\n%s", is_verbose ? "supervisor: ok\n" : "");
    return true;
}

static struct health health_of(const struct supervisor *supervisor) {
    return (struct health){.executors = supervisor->executors,
        .count = supervisor->count,
        .is_stopping = supervisor->stop_ns != 0,
        .is_reload_refused = supervisor->is_reload_refused,
        .now_ns = clock_ns()};
}

static bool write_readiness(void *context, bool is_verbose, FILE *page) {
    const struct health health = health_of(context);
    return health_write(&health, is_verbose, page);
}

static bool write_status(void *context, bool is_verbose, FILE *page) {
    const struct health health = health_of(context);
    status_write(&health, page);
    return true;
}

/* The page says nothing itself: what it draws is behind the token. */
static bool write_page(void *context, bool is_verbose, FILE *page) {
    page_write(page);
    return true;
}

#define PROBE_TYPE "text/plain; charset=utf-8"

static const struct http_page pages[] = {{"/livez", PROBE_TYPE, true, write_liveness},
    {"/readyz", PROBE_TYPE, true, write_readiness},
    {"/metrics", METRICS_PAGE_TYPE, false, write_metrics},
    {"/status.json", STATUS_TYPE, false, write_status}, {"/", PAGE_TYPE, true, write_page}, {0}};

/* Tells systemd. */
static void tell(const struct supervisor *supervisor) {
    char text[400];
    if (supervisor->notify == NULL) return;
    const struct health health = health_of(supervisor);
    health_describe(&health, text, sizeof text);
    notify_alive(supervisor->notify, health.now_ns);
    notify_status(supervisor->notify, "%s", text);
}

static enum err serve(struct supervisor *supervisor, struct error *err) {
    const struct settings *settings = supervisor->options->settings;
    const struct http_options options = {.address = settings->http.listen,
        .token_file = settings->http.token_file,
        .pages = pages,
        .context = supervisor,
        .policy = supervisor->policy};
    if (options.address[0] == 0) return ERR_OK;
    page_policy(supervisor->policy);
    enum err code = http_listen(&options, &supervisor->http, err);
    if (code == ERR_OK)
        log_event(LOG_INFO, LOG_EVENT("listening"),
            "a page at http://%s/, and /status.json, /metrics, /livez, /readyz?verbose",
            options.address);
    return code;
}

/* ---- the whole ---- */

/* The exit code of the first executor that failed. CLI_DEVICE only if no executor ended well. */
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
    *supervisor = (struct supervisor){.options = options, .signal_fd = -1};
    supervisor->executors = calloc(options->device_count, sizeof supervisor->executors[0]);
    if (supervisor->executors == NULL) return error_no_memory(err, "no memory for the executors");
    enum err code = ERR_OK;
    for (; supervisor->count < options->device_count && code == ERR_OK; supervisor->count++)
        code = executor_init(&supervisor->executors[supervisor->count], options,
            &options->devices[supervisor->count], err);
    if (code == ERR_OK) code = serve(supervisor, err);
    if (code == ERR_OK) code = take_signals(supervisor, err);
    if (code == ERR_OK) supervisor->notify = notify_open();
    return code;
}

static void fini(struct supervisor *supervisor) {
    notify_close(supervisor->notify);
    http_close(supervisor->http);
    if (supervisor->signal_fd >= 0) close(supervisor->signal_fd);
    for (size_t i = 0; i < supervisor->count; i++) executor_fini(&supervisor->executors[i]);
    free(supervisor->executors);
}

enum err supervise_run(const struct supervise_options *options, int *ret, struct error *err) {
    struct supervisor supervisor;
    enum err code = init(&supervisor, options, err);
    if (code == ERR_OK) {
        struct progress progress;
        progress_init(&progress, options->is_finite, clock_ns());
        while (tend_all(&supervisor)) {
            tell(&supervisor);
            progress_show(&progress, supervisor.executors, supervisor.count, clock_ns());
            wait_for_signal(&supervisor);
            reap_all(&supervisor);
        }
        progress_fini(&progress);
        *ret = exit_code(&supervisor);
    }
    fini(&supervisor);
    return code;
}

#include "pipeline/reload.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/crew.h"
#include "base/pulse.h"
#include "state/crash.h"

struct reload {
    struct stages *stages;
    struct fitness_source source;
    bool is_supervised; /* the supervisor says what does not reload, for all executors */
    int signal_fd;
    atomic_bool is_stopped;
    struct crew *crew;
};

/* ---- editions ---- */

static enum err publish(struct stages *stages, struct settings *settings, struct registry *registry,
    struct error *err) {
    enum err code = editions_publish(stages->editions, settings, registry, err);
    if (code != ERR_OK) return code;
    const struct edition *current = editions_current(stages->editions);
    state_set_programs(stages->state, (uint32_t)registry_count(current->registry));
    flight_set_bytes_max(&stages->flight, current->settings.limits.bytes_in_flight);
    return ERR_OK;
}

enum err reload_begin(struct stages *stages, struct registry *registry, struct error *err) {
    struct settings copy;
    if (!settings_copy(stages->settings, &copy))
        return error_no_memory(err, "no memory for the configuration");
    enum err code = publish(stages, &copy, registry, err);
    if (code != ERR_OK) settings_fini(&copy);
    return code;
}

/* ---- reading again ---- */

/* How many programs of one are not in the other as they are. */
static size_t count_others(const struct registry *registry, const struct registry *other) {
    size_t count = 0;
    for (size_t i = 0; i < registry_count(registry); i++) {
        const struct program *program = registry_at(registry, i);
        const struct program *found = registry_find(other, slice_of_text(program->name));
        count += found == NULL || !program_is_same(program, found);
    }
    return count;
}

/* An error leaves everything as it was. */
static enum err read_again(struct reload *reload, struct error *err) {
    struct stages *stages = reload->stages;
    const struct registry *earlier = editions_current(stages->editions)->registry;
    struct reading reading;
    enum err code = fitness_read_again(&reload->source, stages->settings, earlier, &reading, err);
    if (code != ERR_OK) return code;
    const struct registry *registry = reading.registry;
    size_t count = registry_count(registry);
    size_t fresh = count_others(registry, earlier), gone = count_others(earlier, registry);
    enum log_level level = reading.settings.log.level;
    code = publish(stages, &reading.settings, reading.registry, err);
    if (code == ERR_OK) {
        reading.registry = NULL; /* the edition's own */
        log_set_level(level);
        log_event(LOG_INFO, LOG_EVENT("reloaded"),
            "reloaded: %zu programs; %zu are new or changed, %zu old ones are changed or gone",
            count, fresh, gone);
        if (!reload->is_supervised) reading_log_fixed(&reading);
    }
    reading_fini(&reading);
    return code;
}

static void on_hangup(struct reload *reload) {
    struct error err;
    enum err code = read_again(reload, &err);
    state_set_reload(reload->stages->state, code != ERR_OK);
    if (code != ERR_OK)
        log_error_event(
            LOG_ERROR, LOG_EVENT("reload_refused"), "not reloaded, nothing has changed", &err);
    if (err_is_sticky(code)) stages_fail(reload->stages, &err);
}

/* ---- the thread ---- */

/* True where one or more came since the last look. */
static bool take_signals(struct reload *reload) {
    struct signalfd_siginfo info;
    bool ret = false;
    while (read(reload->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) ret = true;
    return ret;
}

static void run_reload(void *context, uint32_t index) {
    struct reload *reload = context;
    struct stages *stages = reload->stages;
    struct error err;
    crash_is_no_evidence();
    if (device_bind(&stages->device, &err) != ERR_OK) stages_fail(stages, &err);
    struct pollfd fds[] = {{.fd = reload->signal_fd, .events = POLLIN},
        {.fd = editions_fd(stages->editions), .events = POLLIN}};
    /* relaxed: it only ends the loop */
    while (!atomic_load_explicit(&reload->is_stopped, memory_order_relaxed)) {
        pulse_idle();
        (void)poll(fds, sizeof fds / sizeof fds[0], -1);
        pulse_busy();
        editions_bury(stages->editions);
        if (take_signals(reload) && !stages_must_stop(stages)) on_hangup(reload);
    }
}

enum err reload_start(struct stages *stages, const struct fitness_source *source,
    bool is_supervised, struct reload **ret, struct error *err) {
    sigset_t hangup;
    if (source == NULL) return ERR_OK;
    struct reload *reload = calloc(1, sizeof *reload);
    if (reload == NULL) return error_no_memory(err, "no memory to wait for SIGHUP");
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    *reload = (struct reload){.stages = stages, .source = *source, .is_supervised = is_supervised};
    reload->signal_fd = signalfd(-1, &hangup, SFD_CLOEXEC | SFD_NONBLOCK);
    const struct crew_options crew = {
        .name = "reload", .count = 1, .run = run_reload, .context = reload};
    enum err code = ERR_OK;
    if (reload->signal_fd < 0)
        code = error_set(err, ERR_NO_MEMORY, errno, "raise the limit on open files",
            "cannot wait for SIGHUP: %s", strerror(errno));
    if (code == ERR_OK) code = crew_start(&crew, &reload->crew, err);
    if (code == ERR_OK) *ret = reload;
    else reload_stop(reload);
    return code;
}

void reload_stop(struct reload *reload) {
    if (reload == NULL) return;
    /* relaxed: as above */
    atomic_store_explicit(&reload->is_stopped, true, memory_order_relaxed);
    (void)eventfd_write(editions_fd(reload->stages->editions), 1);
    crew_join(&reload->crew);
    if (reload->signal_fd >= 0) close(reload->signal_fd);
    free(reload);
}

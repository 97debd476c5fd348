#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/pulse.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "cli/own_state.h"
#include "cli/run.h"
#include "metrics/board.h"
#include "pipeline/executor.h"
#include "process/sandbox.h"
#include "state/crash.h"

static atomic_bool stop;
static struct state *_Atomic noted; /* where a stop is noted; NULL: nowhere */
static bool is_supervised;          /* set before there is a handler */
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
    "a signal handler must not take a lock");

/* The second signal ends an executor without a supervisor. */
static void on_stop_signal(int number) {
    /* relaxed: it passes nothing on */
    bool is_second = atomic_exchange_explicit(&stop, true, memory_order_relaxed);
    if (is_second && !is_supervised) _exit(CLI_DRAIN);
    /* acquire: pairs with the release in run_executor() */
    state_note_stop(atomic_load_explicit(&noted, memory_order_acquire));
}

/* A signal that was ignored at the start stays ignored: a shell or the supervisor wants that. */
static void handle_stop_signal(int number) {
    const struct sigaction action = {.sa_handler = on_stop_signal};
    if (!signal_is_ignored(number)) sigaction(number, &action, NULL);
}

static void handle_signals(void) {
    int parent_death_signal = 0;
    prctl(PR_GET_PDEATHSIG, &parent_death_signal);
    is_supervised = parent_death_signal != 0;
    handle_stop_signal(SIGTERM);
    handle_stop_signal(SIGINT);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe shall be a write error */
}

/* Ends the process at once: driver calls may never return, and the next executor waits. */
static void leave(const struct error *err) {
    _exit(cli_fail_error("run", err));
}

/* The path of the state file, which the caller frees; NULL, and ERR_OK, for a run of files without
 * a supervisor, which needs none. */
static enum err find_state(const struct settings *settings, const struct run_arguments *arguments,
    uint32_t device, char **ret, struct error *err) {
    *ret = arguments->state != NULL ? strdup(arguments->state) : NULL;
    if (arguments->state == NULL && arguments->is_file_run) return ERR_OK;
    char *folder = arguments->state == NULL ? settings_state_dir(settings) : NULL;
    if (folder != NULL) *ret = state_folder_file(folder, device);
    enum err code = ERR_OK;
    if (*ret == NULL) code = error_no_memory(err, "no memory for a path");
    else if (folder != NULL) code = state_folder_make(folder, err);
    free(folder);
    return code;
}

/* The identity stays empty if jobs come from a file. A broker of this process has new messages. */
static enum err open_own_state(const struct settings *settings,
    const struct run_arguments *arguments, uint32_t device, struct state **ret,
    struct instance *identity, struct error *err) {
    char *path;
    bool is_member = !arguments->is_file_run;
    bool is_new_broker = settings->broker == BROKER_EMBEDDED && arguments->broker == NULL;
    enum err code = find_state(settings, arguments, device, &path, err);
    if (code == ERR_OK && path != NULL) code = own_state_open(path, ret, err);
    if (code == ERR_OK && is_member && is_new_broker) state_forget(*ret);
    if (code == ERR_OK && arguments->life != NULL)
        state_name_life(*ret, strtoull(arguments->life, NULL, 10));
    if (code == ERR_OK && is_member) code = own_state_identify(path, device, identity, err);
    free(path);
    return code;
}

/* What a life is made from. */
struct beginning {
    const struct settings *settings;
    const struct run_arguments *arguments;
    uint32_t device;
    struct connection connection; /* once it has begun */
};

static enum err connect(const struct beginning *beginning, const struct instance *identity,
    struct state *state, struct connection *ret, struct error *err) {
    const struct run_arguments *arguments = beginning->arguments;
    const struct membership membership = {.instance_id = identity->name, .owner = identity->owner};
    if (arguments->is_file_run)
        return connect_files(
            beginning->settings, &arguments->files, state_progress(state), ret, err);
    return connect_kafka(
        beginning->settings, beginning->device, &membership, arguments->broker, ret, err);
}

static enum err begin_life(void *context, struct executor_life *ret, struct error *err) {
    struct beginning *beginning = context;
    struct connection connection;
    struct instance identity = {0};
    struct state *state = NULL;
    enum err code = open_own_state(
        beginning->settings, beginning->arguments, beginning->device, &state, &identity, err);
    if (code != ERR_OK) return code;
    /* release: pairs with the acquire in on_stop_signal() */
    atomic_store_explicit(&noted, state, memory_order_release);
    crash_watch(state);
    pulse_keep(state_pulses(state));
    code = connect(beginning, &identity, state, &connection, err);
    if (code != ERR_OK) return code;
    beginning->connection = connection;
    *ret = (struct executor_life){.source = connection.source,
        .sink = connection.sink,
        .telemetry = connection.telemetry,
        .progress = connection.feed,
        .control = connection.control,
        .state = state};
    return ERR_OK;
}

/* The exit code of a run whose jobs were all done or handed back. */
static int exit_code_of(const struct executor_summary *summary, bool is_file_run) {
    log_event(LOG_INFO, LOG_EVENT("done"),
        "done: %" PRIu64 " jobs ok, %" PRIu64 " failed, in %.3f s", summary->ok, summary->errors,
        (double)summary->elapsed_ns / 1e9);
    if (!is_file_run) return CLI_OK;
    if (!summary->is_complete) {
        log_line(LOG_WARN, "interrupted: the same command starts over, and replaces the results "
                           "that are there; move them to keep them");
        return CLI_DRAIN;
    }
    return summary->errors > 0 ? CLI_JOBS_FAILED : CLI_OK;
}

int run_executor(
    const struct settings *settings, const struct run_arguments *arguments, uint32_t device) {
    struct beginning beginning = {settings, arguments, device, .connection = {0}};
    struct fitness_source source = run_source(arguments);
    struct board *board = NULL;
    struct executor_summary summary;
    struct error err;
    source.is_sandboxed = true;
    handle_signals();
    sandbox_enter(settings->executors.core_dumps == CORE_DUMPS_INHERIT);
    enum err code = ERR_OK;
    if (arguments->board != NULL) code = board_map(atoi(arguments->board), &board, &err);
    if (code != ERR_OK) return cli_fail_error("run", &err);
    const struct executor_options options = {.settings = settings,
        .reloads = &source,
        .is_supervised = is_supervised != 0,
        .begin = begin_life,
        .context = &beginning,
        .spare_fd = arguments->spare != NULL ? atoi(arguments->spare) : 0,
        .device = device,
        .board = board,
        .on_lost = leave,
        .stop = &stop};
    code = executor_run(&options, &summary, &err);
    if (code == ERR_TIMEOUT)
        _exit(cli_fail_error("run", &err)); /* threads may hang in the driver */
    connection_fini(&beginning.connection);
    /* the state is not closed: a later crash or stop is still noted in it */
    int ret = code == ERR_OK ? exit_code_of(&summary, arguments->is_file_run)
                             : cli_fail_error("run", &err);
    if (summary.is_hung) _exit(ret);
    return ret;
}

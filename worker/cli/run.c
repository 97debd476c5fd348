/* gpu-worker run: the worker itself, as its supervisor or as one executor. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/pulse.h"
#include "base/signals.h"
#include "base/temporary.h"
#include "broker/connect.h"
#include "broker/embedded.h"
#include "cli/apart.h"
#include "cli/cli.h"
#include "cli/kept_config.h"
#include "cli/options.h"
#include "cli/own_state.h"
#include "metrics/board.h"
#include "pipeline/executor.h"
#include "pipeline/fitness.h"
#include "process/sandbox.h"
#include "state/crash.h"
#include "supervise/supervise.h"

static const char about[] =
    "Takes jobs from Kafka, runs them on the GPU and publishes their results, until SIGTERM or\n"
    "SIGINT: then it begins no more, finishes what it has begun within drain_timeout_ms, commits,\n"
    "and leaves its group. A second such signal ends it at once. Jobs that are not finished run\n"
    "later, here or elsewhere.\n"
    "SIGHUP reads the configuration and the programs again.\n"
    "With --jobs it runs a stream of job messages (msgpack, one after the other) without any "
    "broker,\n"
    "on the first of `devices`; the exit code says whether a job failed (7) or the run was "
    "interrupted (6).\n\n"
    "With http.listen it serves a page at /, /status.json, /metrics, /livez and "
    "/readyz?verbose.\n"
    "It tells systemd when it has started (the first executor runs), that it is alive or stopping, "
    "and what it waits for.\n\n"
    "Each GPU gets a process of its own, an executor, which is started again when it dies: a "
    "job\n"
    "that crashes this process fails, and no other job does.\n";

static const char examples[] =
    "examples:\n"
    "  gpu-worker run --config worker.yaml\n"
    "  gpu-worker run --driver cpu --jobs jobs.msgpack --results results.msgpack\n";

struct run_arguments {
    const char *config, *config_source, *driver, *device, *state, *life, *board, *spare, *broker;
    enum driver_choice driver_choice; /* used if `driver` is not NULL */
    struct file_paths files;
    bool is_file_run, no_supervisor;
};

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

/* SIGHUP asks for a reload. It is blocked, and stays pending until the executor checks for it. */
static void hold_back_hangup(void) {
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hangup, NULL);
}

/* False: the command must end with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct run_arguments *ret, int *ret_exit) {
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE",
            "the configuration; without it, all defaults (gpu-worker config defaults)",
            .text = &ret->config},
        {"driver", "cuda|cpu", "overrides `driver`", .text = &ret->driver},
        {"jobs", "FILE",
            "job messages; - is standard input, which cannot be read again: the run\n"
            "then ends when the executor dies",
            .text = &ret->files.jobs},
        {"results", "FILE", "result messages; - is standard output, as above", CLI_MUST,
            .with = "jobs", .text = &ret->files.results},
        {"dead-letters", "FILE", "dead letters, as JSON lines (schemas/README.md)", .with = "jobs",
            .text = &ret->files.dead_letters},
        {"telemetry", "FILE", "telemetry, every telemetry.interval_ms and at the end",
            .with = "jobs", .text = &ret->files.telemetry},
        {"no-supervisor", NULL,
            "run one executor in this process, for debugging; it is not started again,\n"
            "and not ended when a kernel hangs",
            .flag = &ret->no_supervisor},
        {"device", "N", "the device, by the driver's number; the first of `devices` if not given",
            .with = "no-supervisor", .text = &ret->device},
        {"state", "FILE", "the state file, instead of one in state.dir", .with = "no-supervisor",
            .text = &ret->state},
        {"life", "N", "the number of its life, given by its supervisor", .with = "no-supervisor",
            .text = &ret->life},
        {"board", "N", "the descriptor of memory to count in, which its supervisor reads",
            .with = "no-supervisor", .text = &ret->board},
        {"spare", "N",
            "the descriptor over which its supervisor says when its life begins: until then it\n"
            "only waits, with the device ready",
            .with = "no-supervisor", .text = &ret->spare},
        {"broker", "HOST:PORT", "where its supervisor's embedded broker is",
            .with = "no-supervisor", .text = &ret->broker},
        {"config-source", "FILE", "what SIGHUP reads, if --config is a copy",
            .with = "no-supervisor", .text = &ret->config_source},
        {0}};
    const struct cli_command command = {
        .name = "run", .about = about, .options = options, .examples = examples};
    bool is_fine = cli_parse(&command, argc, argv, &words, ret_exit);
    ret->is_file_run = ret->files.jobs != NULL;
    return is_fine;
}

static int fail(const struct error *err) {
    return cli_fail_error("run", err);
}

/* ---- one executor ---- */

/* Ends the process at once: driver calls may never return, and the next executor waits. */
static void leave(const struct error *err) {
    _exit(fail(err));
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

static struct fitness_source source_of(const struct run_arguments *arguments) {
    return (struct fitness_source){.config = arguments->config_source,
        .is_file_run = arguments->is_file_run,
        .has_state_file = arguments->state != NULL,
        .driver = arguments->driver != NULL ? &arguments->driver_choice : NULL};
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

static int run_executor(
    const struct settings *settings, const struct run_arguments *arguments, uint32_t device) {
    struct beginning beginning = {settings, arguments, device, .connection = {0}};
    struct fitness_source source = source_of(arguments);
    struct board *board = NULL;
    struct executor_summary summary;
    struct error err;
    source.is_sandboxed = true;
    handle_signals();
    sandbox_enter(settings->executors.core_dumps == CORE_DUMPS_INHERIT);
    enum err code = ERR_OK;
    if (arguments->board != NULL) code = board_map(atoi(arguments->board), &board, &err);
    if (code != ERR_OK) return fail(&err);
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
    if (code == ERR_TIMEOUT) _exit(fail(&err)); /* threads may hang in the driver */
    connection_fini(&beginning.connection);
    /* the state is not closed: a later crash or stop is still noted in it */
    int ret = code == ERR_OK ? exit_code_of(&summary, arguments->is_file_run) : fail(&err);
    if (summary.is_hung) _exit(ret);
    return ret;
}

/* ---- the supervisor ---- */

static bool is_plain_file(const char *path, bool may_be_missing) {
    struct stat file;
    if (strcmp(path, "-") == 0) return false;
    if (stat(path, &file) != 0) return may_be_missing;
    return S_ISREG(file.st_mode);
}

/* Why the run cannot go on after an executor died; NULL: it can. */
static const char *final_reason(const struct run_arguments *arguments) {
    const struct file_paths *files = &arguments->files;
    if (!arguments->is_file_run) return NULL;
    if (!is_plain_file(files->jobs, false))
        return "jobs that come through a pipe cannot be read again";
    if (!is_plain_file(files->results, true) ||
        (files->dead_letters != NULL && !is_plain_file(files->dead_letters, true)))
        return "output that went into a pipe cannot be taken back";
    return NULL;
}

/* A run of files needs its state only until it ends, so its folder is temporary. */
static char *make_state_folder(
    const struct settings *settings, bool is_file_run, struct error *err) {
    char temporary[TEMPORARY_PATH_SIZE];
    enum err code = ERR_OK;
    if (is_file_run) code = temporary_folder_make("gpu-worker", temporary, err);
    if (code != ERR_OK) return NULL;
    char *folder = is_file_run ? strdup(temporary) : settings_state_dir(settings);
    if (folder == NULL) code = error_no_memory(err, "no memory for a path");
    else if (!is_file_run) code = state_folder_make(folder, err);
    if (code == ERR_OK) return folder;
    free(folder);
    return NULL;
}

static void remove_state_folder(const char *folder, uint32_t device) {
    char *path = state_folder_file(folder, device);
    if (path != NULL) unlink(path);
    free(path);
    rmdir(folder);
}

/* Arguments for executors that depend on the command line. */
static void list_arguments(const struct run_arguments *arguments, const char *ret[static 16]) {
    const struct {
        const char *name, *value;
    } all[] = {{"--driver", arguments->driver}, {"--jobs", arguments->files.jobs},
        {"--results", arguments->files.results}, {"--dead-letters", arguments->files.dead_letters},
        {"--telemetry", arguments->files.telemetry}, {"--broker", arguments->broker},
        {"--config-source", arguments->config_source}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].value == NULL) continue;
        ret[count++] = all[i].name;
        ret[count++] = all[i].value;
    }
    ret[count] = NULL;
}

/* Only one executor can read a file, or from the embedded broker. */
static size_t count_max(const struct settings *settings, const struct run_arguments *arguments) {
    bool is_single = arguments->is_file_run || settings->broker == BROKER_EMBEDDED;
    return is_single ? 1 : PROBED_DEVICES_MAX;
}

/* CLI_OK, or the exit code of an error that was reported. */
static int find_devices(const struct settings *settings, const char *config, size_t max,
    struct probed_device devices[static PROBED_DEVICES_MAX], size_t *count) {
    struct error err;
    int child_exit_code;
    enum err code = probe_devices(settings, config, devices, max, count, &child_exit_code, &err);
    if (code == ERR_OK) return CLI_OK;
    return child_exit_code != 0 ? child_exit_code : fail(&err);
}

/* The supervisor's memory contains the configuration too, so it writes no core dump either. */
static void hide_memory(const struct settings *settings) {
    if (settings->executors.core_dumps != CORE_DUMPS_INHERIT)
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* What the supervisor reloads before its executors do; executors that start later use it too. */
struct rereading {
    const struct run_arguments *arguments;
    const struct settings *running;
    struct kept_config *kept;
};

static enum err read_again(void *context, struct error *err) {
    const struct rereading *rereading = context;
    struct fitness_source source = source_of(rereading->arguments);
    struct kept_config kept = {.fd = -1};
    struct reading reading;
    enum err code = ERR_OK;
    if (source.config != NULL) code = kept_config_init(&kept, source.config, err);
    source.text = kept.text;
    if (code == ERR_OK) code = fitness_read_again(&source, rereading->running, NULL, &reading, err);
    if (code != ERR_OK) {
        kept_config_fini(&kept);
        return code;
    }
    kept_config_fini(rereading->kept);
    *rereading->kept = kept;
    log_set_level(reading.settings.log.level);
    reading_log_fixed(&reading);
    reading_fini(&reading);
    return ERR_OK;
}

/*
 * The embedded broker lives here: what kills an executor does not reach it. It is new, and what the
 * executor of an earlier one has left says nothing about its messages.
 */
static enum err start_broker(const struct settings *settings, const char *state_folder,
    uint32_t device, struct embedded **ret, struct error *err) {
    *ret = NULL;
    if (settings->broker != BROKER_EMBEDDED) return ERR_OK;
    enum err code = own_state_forget(state_folder, device, err);
    return code == ERR_OK ? connect_start_broker(settings, ret, err) : code;
}

static int run_supervisor(
    const struct settings *settings, struct run_arguments *arguments, struct kept_config *kept) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    size_t count;
    struct error err;
    const char *executor_arguments[16];
    int ret =
        find_devices(settings, arguments->config, count_max(settings, arguments), devices, &count);
    if (ret != CLI_OK) return ret;
    hide_memory(settings);
    char *folder = make_state_folder(settings, arguments->is_file_run, &err);
    if (folder == NULL) return fail(&err);
    struct embedded *embedded = NULL;
    enum err code = ERR_OK;
    if (!arguments->is_file_run)
        code = start_broker(settings, folder, devices[0].index, &embedded, &err);
    if (embedded != NULL) arguments->broker = embedded_bootstrap_servers(embedded);
    list_arguments(arguments, executor_arguments);
    struct rereading rereading = {arguments, settings, kept};
    const struct supervise_options options = {.settings = settings,
        .reload = read_again,
        .context = &rereading,
        .state_dir = folder,
        .config = arguments->config,
        .arguments = executor_arguments,
        .devices = devices,
        .device_count = count,
        .is_finite = arguments->is_file_run,
        .final_reason = final_reason(arguments)};
    if (code == ERR_OK) code = supervise_run(&options, &ret, &err);
    if (code != ERR_OK) ret = fail(&err);
    embedded_destroy(embedded);
    if (arguments->is_file_run) remove_state_folder(folder, devices[0].index);
    free(folder);
    return ret;
}

/* ---- the command ---- */

static int run_alone(const struct settings *settings, const struct run_arguments *arguments) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    size_t count;
    uint64_t device;
    if (arguments->device != NULL) {
        if (number_read(arguments->device, &device) != strlen(arguments->device))
            return cli_fail(CLI_USAGE, "run", "--device is a number, not '%s'", arguments->device);
        return run_executor(settings, arguments, (uint32_t)device);
    }
    int ret = find_devices(settings, arguments->config, 1, devices, &count);
    return ret == CLI_OK ? run_executor(settings, arguments, devices[0].index) : ret;
}

/* A mistyped name must not overwrite another file. */
static int check_apart(const struct run_arguments *arguments) {
    const struct file_paths *files = &arguments->files;
    const struct named_file all[] = {{"--config", arguments->config, false},
        {"--jobs", files->jobs, false}, {"--results", files->results, true},
        {"--dead-letters", files->dead_letters, true}, {"--telemetry", files->telemetry, true}};
    const struct named_file *first, *second;
    if (!arguments->is_file_run ||
        files_are_apart(all, sizeof all / sizeof all[0], &first, &second))
        return CLI_OK;
    return cli_fail(CLI_USAGE, "run", "%s %s and %s %s are the same file; give each its own",
        first->option, first->path, second->option, second->path);
}

static int run_with(
    const struct settings *settings, struct run_arguments *arguments, struct kept_config *kept) {
    return arguments->no_supervisor ? run_alone(settings, arguments)
                                    : run_supervisor(settings, arguments, kept);
}

/* A worker that cannot work must not take jobs. */
static int run_if_fit(struct run_arguments *arguments, const char *path, struct kept_config *kept) {
    struct fitness_source source = source_of(arguments);
    struct settings settings;
    struct problems problems;
    source.config = path;
    source.text = kept->text;
    problems_init(&problems);
    registry_destroy(fitness_read(&source, NULL, &settings, &problems));
    log_init(settings.log.level, settings.log.format); /* also for what is wrong */
    int ret = problems_any(&problems) ? cli_fail_problems("run", &problems) : CLI_OK;
    problems_fini(&problems);
    if (ret == CLI_OK) ret = run_with(&settings, arguments, kept);
    settings_fini(&settings);
    return ret;
}

/* A pipe can be read only once, so it is copied, and SIGHUP reads the copy. */
static int run_as_configured(struct run_arguments *arguments) {
    struct kept_config kept = {.fd = -1};
    struct error err;
    const char *path = arguments->config;
    if (path != NULL && kept_config_init(&kept, path, &err) != ERR_OK)
        return cli_fail(CLI_CONFIG, "run", "%s; %s", err.message, err.fix);
    if (path != NULL) arguments->config = kept.path;
    if (path != NULL && arguments->config_source == NULL)
        arguments->config_source = is_plain_file(path, false) ? path : kept.path;
    int ret = run_if_fit(arguments, path, &kept);
    kept_config_fini(&kept);
    return ret;
}

int command_run(int argc, char **argv) {
    struct run_arguments arguments = {0};
    hold_back_hangup();
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
    if (!cli_read_driver(arguments.driver, &arguments.driver_choice))
        return cli_fail(CLI_USAGE, "run", "--driver is cuda or cpu, not '%s'", arguments.driver);
    exit_code = check_apart(&arguments);
    return exit_code == CLI_OK ? run_as_configured(&arguments) : exit_code;
}

/* gpu-worker run: the worker itself, as its supervisor or as one executor. */
#include "cli/run.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/number.h"
#include "cli/apart.h"
#include "cli/cli.h"
#include "cli/options.h"

static const char about[] =
    "Takes jobs from Kafka, runs them on the GPU and publishes their results, until SIGTERM or\n"
    "SIGINT. It then takes no new jobs, finishes those in progress within drain_timeout_ms, "
    "commits,\n"
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
    "Each GPU gets a process of its own, an executor that is restarted when it dies: a "
    "job\n"
    "that crashes this process fails, and no other job does.\n";

static const char examples[] =
    "examples:\n"
    "  gpu-worker run --config worker.yaml\n"
    "  gpu-worker run --driver cpu --jobs jobs.msgpack --results results.msgpack\n";

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
        {"progress", "FILE", "what long jobs show of themselves while they run", .with = "jobs",
            .text = &ret->files.progress},
        {"no-supervisor", NULL,
            "run one executor in this process, for debugging; it is not started again,\n"
            "and not ended when a kernel hangs",
            .flag = &ret->no_supervisor},
        {"device", "N", "the device, by the driver's number; the first of `devices` if not given",
            .with = "no-supervisor", .text = &ret->device},
        {"state", "FILE", "the state file, instead of one in state.dir", .with = "no-supervisor",
            .text = &ret->state},
        {"life", "N", "the number of its life, given by its supervisor", .with = "no-supervisor",
            .is_hidden = true, .text = &ret->life},
        {"board", "N", "the descriptor of memory to count in, which its supervisor reads",
            .with = "no-supervisor", .is_hidden = true, .text = &ret->board},
        {"spare", "N",
            "the descriptor over which its supervisor says when its life begins: until then it\n"
            "only waits, with the device ready",
            .with = "no-supervisor", .is_hidden = true, .text = &ret->spare},
        {"broker", "HOST:PORT", "where its supervisor's embedded broker is",
            .with = "no-supervisor", .is_hidden = true, .text = &ret->broker},
        {"config-source", "FILE", "what SIGHUP reads, if --config is a copy",
            .with = "no-supervisor", .is_hidden = true, .text = &ret->config_source},
        {0}};
    const struct cli_command command = {
        .name = "run", .about = about, .options = options, .examples = examples};
    bool is_fine = cli_parse(&command, argc, argv, &words, ret_exit);
    ret->is_file_run = ret->files.jobs != NULL;
    return is_fine;
}

struct fitness_source run_source(const struct run_arguments *arguments) {
    return (struct fitness_source){.config = arguments->config_source,
        .is_file_run = arguments->is_file_run,
        .has_state_file = arguments->state != NULL,
        .driver = arguments->driver != NULL ? &arguments->driver_choice : NULL};
}

bool run_is_plain_file(const char *path, bool may_be_missing) {
    struct stat file;
    if (strcmp(path, "-") == 0) return false;
    if (stat(path, &file) != 0) return may_be_missing;
    return S_ISREG(file.st_mode);
}

int run_find_devices(const struct settings *settings, const char *config, size_t max,
    struct probed_device devices[static PROBED_DEVICES_MAX], size_t *count) {
    struct error err;
    int child_exit_code;
    enum err code = probe_devices(settings, config, devices, max, count, &child_exit_code, &err);
    if (code == ERR_OK) return CLI_OK;
    return child_exit_code != 0 ? child_exit_code : cli_fail_error("run", &err);
}

static int run_alone(const struct settings *settings, const struct run_arguments *arguments) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    size_t count;
    uint64_t device;
    if (arguments->device != NULL) {
        if (number_read(arguments->device, &device) != strlen(arguments->device))
            return cli_fail(CLI_USAGE, "run", "--device is a number, not '%s'", arguments->device);
        return run_executor(settings, arguments, (uint32_t)device);
    }
    int ret = run_find_devices(settings, arguments->config, 1, devices, &count);
    return ret == CLI_OK ? run_executor(settings, arguments, devices[0].index) : ret;
}

/* A mistyped name must not overwrite another file. */
static int check_apart(const struct run_arguments *arguments) {
    const struct file_paths *files = &arguments->files;
    const struct named_file all[] = {{"--config", arguments->config, false},
        {"--jobs", files->jobs, false}, {"--results", files->results, true},
        {"--dead-letters", files->dead_letters, true}, {"--telemetry", files->telemetry, true},
        {"--progress", files->progress, true}};
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
    struct fitness_source source = run_source(arguments);
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
        arguments->config_source = run_is_plain_file(path, false) ? path : kept.path;
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

/* gpu-worker run: the worker itself. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "executor/connect.h"
#include "executor/executor.h"

static const char usage[] =
    "usage: gpu-worker run [--config FILE]\n"
    "       gpu-worker run [--config FILE] --jobs FILE --results FILE [--dead-letters FILE]\n"
    "                      [--telemetry FILE]\n"
    "\n"
    "Takes jobs from Kafka, runs them on the GPU and publishes their results, until SIGTERM or "
    "SIGINT:\n"
    "then it takes no more, finishes what it has within drain_timeout_ms, commits, and leaves its "
    "group.\n"
    "With --jobs it runs a stream of job messages (msgpack, one after the other) without any "
    "broker.\n"
    "\n"
    "  --config FILE        the configuration; without it, all defaults (gpu-worker config "
    "defaults)\n"
    "  --driver cuda|cpu    overrides `driver`\n"
    "  --jobs FILE          job messages; - is standard input\n"
    "  --results FILE       result messages; - is standard output\n"
    "  --dead-letters FILE  what could not be run, as JSON lines (schemas/README.md)\n"
    "  --telemetry FILE     what the worker says of itself, each telemetry.interval_ms and at the "
    "end\n"
    "\n"
    "examples:\n"
    "  gpu-worker run --config worker.yaml\n"
    "  gpu-worker run --driver cpu --jobs jobs.msgpack --results results.msgpack\n";

struct run_arguments {
    const char *config, *driver;
    struct file_paths files;
    bool help;
};

static volatile sig_atomic_t stop;

static void on_stop_signal(int number) {
    stop = 1;
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = on_stop_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN; /* a closed pipe is an error of the write */
    sigaction(SIGPIPE, &action, NULL);
}

static bool parse_arguments(int argc, char **argv, struct run_arguments *ret) {
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"driver", required_argument, NULL, 'd'}, {"jobs", required_argument, NULL, 'j'},
        {"results", required_argument, NULL, 'r'}, {"dead-letters", required_argument, NULL, 'x'},
        {"telemetry", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': ret->config = optarg; break;
        case 'd': ret->driver = optarg; break;
        case 'j': ret->files.jobs = optarg; break;
        case 'r': ret->files.results = optarg; break;
        case 'x': ret->files.dead_letters = optarg; break;
        case 't': ret->files.telemetry = optarg; break;
        case 'h': ret->help = true; break;
        default: return false;
        }
    }
    const struct file_paths *files = &ret->files;
    bool is_file_run = files->jobs != NULL || files->results != NULL ||
                       files->dead_letters != NULL || files->telemetry != NULL;
    return optind == argc && (!is_file_run || (files->jobs != NULL && files->results != NULL));
}

static int fail(const struct error *err) {
    return cli_fail_error("run", err);
}

static int run(const struct settings *settings, const struct run_arguments *arguments) {
    struct connection connection = {0};
    struct executor_summary summary;
    struct error err;
    bool is_file_run = arguments->files.jobs != NULL;
    enum err code = is_file_run ? connect_files(settings, &arguments->files, &connection, &err)
                                : connect_kafka(settings, &connection, &err);
    if (code != ERR_OK) return fail(&err);
    const struct executor_options options = {.settings = settings,
        .source = connection.source,
        .sink = connection.sink,
        .telemetry = connection.telemetry,
        .control = connection.control,
        .stop = &stop};
    code = executor_run(&options, &summary, &err);
    if (code == ERR_TIMEOUT) _exit(fail(&err)); /* threads may hang in the driver */
    connection_fini(&connection);
    if (code != ERR_OK) return fail(&err);
    log_line(LOG_INFO, "done: %" PRIu64 " jobs ok, %" PRIu64 " failed, in %.1f s", summary.ok,
        summary.errors, (double)summary.elapsed_ns / 1e9);
    return CLI_OK;
}

int command_run(int argc, char **argv) {
    struct run_arguments arguments = {0};
    if (!parse_arguments(argc, argv, &arguments)) return cli_fail_usage("run");
    if (arguments.help) return cli_help(usage);

    struct settings settings;
    int ret = cli_load_settings("run", arguments.config, &settings);
    if (ret != CLI_OK) return ret;
    if (cli_override_driver(arguments.driver, &settings)) {
        log_init(settings.log.level, settings.log.format);
        handle_signals();
        ret = run(&settings, &arguments);
    } else {
        ret = cli_fail(CLI_USAGE, "run", "--driver is cuda or cpu, not '%s'", arguments.driver);
    }
    settings_fini(&settings);
    return ret;
}

#include "bench/command.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench.h"
#include "bench/table.h"
#include "cli/cli.h"

static const char usage[] =
    "usage: gpu-worker bench engine [--config FILE] [--driver cuda|cpu] [--rounds N] [--ms N]\n"
    "       gpu-worker bench state [--config FILE] [--driver cuda|cpu] [--rounds N] [--ms N]\n"
    "       gpu-worker bench isolation [--config FILE] [--driver cuda|cpu] [--rounds N] [--ms N]\n"
    "       gpu-worker bench kafka [--config FILE] [--driver cuda|cpu] [--rounds N] [--messages "
    "N]\n"
    "\n"
    "Measures the worker against a loop that does the same work and nothing else, in the same "
    "process,\n"
    "round after round in turns. Prints medians, and the least and the most of the ratio.\n"
    "\n"
    "  engine  jobs from memory through the whole executor, against copies and launches alone\n"
    "  state   the same jobs with a state file, against the same without one\n"
    "  isolation\n"
    "          the same jobs with each `batch.isolation`, by tenants that change seldom or always\n"
    "  kafka   jobs that do nothing, from topic to topic, against consuming and producing alone; "
    "makes\n"
    "          topics of its own on the configured brokers, and removes them\n"
    "\n"
    "  --config FILE        lanes and their depth; without it, all defaults\n"
    "  --driver cuda|cpu    overrides `driver`\n"
    "  --rounds N           1 to 99, 5 unless given\n"
    "  --ms N               engine, state, isolation: about how long a round of the baseline "
    "takes; 300 "
    "unless "
    "given\n"
    "  --messages N         kafka: messages of a round; 200000 unless given\n"
    "\n"
    "examples:\n"
    "  gpu-worker bench engine --driver cuda\n"
    "  gpu-worker bench kafka --config worker.yaml\n";

struct bench_arguments {
    const char *which, *config, *driver;
    long rounds, milliseconds, messages;
    bool help;
};

static bool parse_arguments(int argc, char **argv, struct bench_arguments *ret) {
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"driver", required_argument, NULL, 'd'}, {"rounds", required_argument, NULL, 'r'},
        {"ms", required_argument, NULL, 'm'}, {"messages", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': ret->config = optarg; break;
        case 'd': ret->driver = optarg; break;
        case 'r': ret->rounds = strtol(optarg, NULL, 10); break;
        case 'm': ret->milliseconds = strtol(optarg, NULL, 10); break;
        case 'n': ret->messages = strtol(optarg, NULL, 10); break;
        case 'h': ret->help = true; break;
        default: return false;
        }
    }
    if (optind < argc) ret->which = argv[optind++];
    bool is_in_range = ret->rounds >= 1 && ret->rounds <= BENCH_ROUNDS_MAX &&
                       ret->milliseconds >= 1 && ret->milliseconds <= 60000 && ret->messages >= 1 &&
                       ret->messages <= 1000000000;
    return ret->help || (optind == argc && ret->which != NULL && is_in_range);
}

static const struct bench {
    const char *name;
    enum err (*run)(const struct bench_options *options, struct error *err);
} benches[] = {{"engine", bench_engine}, {"isolation", bench_isolation}, {"kafka", bench_kafka},
    {"state", bench_state}};

static const struct bench *find_bench(const char *name) {
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
        if (strcmp(benches[i].name, name) == 0) return &benches[i];
    return NULL;
}

int command_bench(int argc, char **argv) {
    struct bench_arguments arguments = {.rounds = 5, .milliseconds = 300, .messages = 200000};
    if (!parse_arguments(argc, argv, &arguments)) return cli_fail_usage("bench");
    if (arguments.help) return cli_help(usage);
    const struct bench *bench = find_bench(arguments.which);
    if (bench == NULL) return cli_fail_usage("bench");

    struct settings settings;
    int ret = cli_load_settings("bench", arguments.config, &settings);
    if (ret != CLI_OK) return ret;
    if (cli_override_driver(arguments.driver, &settings)) {
        struct error err;
        const struct bench_options options = {.settings = &settings,
            .rounds = (unsigned)arguments.rounds,
            .milliseconds = (uint32_t)arguments.milliseconds,
            .messages = (uint64_t)arguments.messages};
        log_init(LOG_WARN, settings.log.format); /* every round starts and ends a worker */
        if (bench->run(&options, &err) != ERR_OK) ret = cli_fail_error("bench", &err);
    } else {
        ret = cli_fail(CLI_USAGE, "bench", "--driver is cuda or cpu, not '%s'", arguments.driver);
    }
    settings_fini(&settings);
    return ret;
}

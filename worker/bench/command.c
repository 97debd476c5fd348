#include "bench/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench.h"
#include "bench/table.h"
#include "cli/cli.h"
#include "cli/options.h"

static const char about[] =
    "Compares the worker with a loop that does the same work and nothing else, in the same "
    "process,\n"
    "round after round in turns. Prints medians, with the least and the most.\n\n"
    "  arrays  array jobs from memory, and the same work as single jobs, against only copying as "
    "many\n"
    "          bytes to the device and back\n"
    "  engine  jobs from memory through the whole executor, against only the copies and "
    "launches\n"
    "  state   the same jobs with a state file, against the same without one\n"
    "  isolation\n"
    "          the same jobs with each `batch.isolation`, with tenants that change seldom or "
    "always\n"
    "  kafka   jobs that do nothing, from topic to topic, against only consuming and producing; "
    "creates\n"
    "          topics of its own on the configured brokers, and removes them\n"
    "  cost    nanoseconds of CPU that a small job costs, by thread and range, and context "
    "switches\n"
    "  latency one job at a time, from memory to its result, against the same copies and a launch\n"
    "  pools   taking and returning a block of the memory pools, by 1 to 16 threads, against free "
    "lists\n"
    "          behind mutexes\n";

static const char examples[] = "examples:\n"
                               "  gpu-worker bench engine --driver cuda\n"
                               "  gpu-worker bench kafka --config worker.yaml\n";

struct bench_arguments {
    const char *which, *config, *driver;
    uint64_t rounds, milliseconds, messages, instances;
    bool is_json;
};

/* False: the command must end with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct bench_arguments *ret, int *ret_exit) {
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE",
            "the configuration, of which it takes lanes and lane_depth; without it, all defaults",
            .text = &ret->config},
        {"driver", "cuda|cpu", "overrides `driver`", .text = &ret->driver},
        {"rounds", "N", "1 to 99; 5 if not given", .number = &ret->rounds},
        {"ms", "N",
            "about how long a round of the baseline takes (not for kafka); 300 if not given",
            .number = &ret->milliseconds},
        {"messages", "N", "messages in a round (only for kafka); 200000 if not given",
            .number = &ret->messages},
        {"instances", "N",
            "instances of an array (only for arrays), and 16 times as many where they are small; "
            "4096 "
            "if not given",
            .number = &ret->instances},
        {"json", NULL, "print each row as a line of JSON, instead of a table",
            .flag = &ret->is_json},
        {0}};
    const struct cli_command command = {.name = "bench",
        .first = "arrays|cost|engine|isolation|kafka|latency|pools|state",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, ret_exit)) return false;
    ret->which = words[0];
    bool is_in_range = ret->rounds >= 1 && ret->rounds <= BENCH_ROUNDS_MAX &&
                       ret->milliseconds >= 1 && ret->milliseconds <= 60000 && ret->messages >= 1 &&
                       ret->messages <= 1000000000 && ret->instances >= 1 &&
                       ret->instances <= BENCH_INSTANCES_MAX;
    if (!is_in_range)
        *ret_exit = cli_fail_usage("bench",
            "--rounds is 1 to %d, --ms 1 to 60000, --messages 1 to 1000000000, and --instances 1 "
            "to "
            "%d",
            BENCH_ROUNDS_MAX, BENCH_INSTANCES_MAX);
    return is_in_range;
}

static const struct bench {
    const char *name;
    enum err (*run)(const struct bench_options *options, struct error *err);
} benches[] = {{"arrays", bench_arrays}, {"cost", bench_cost}, {"engine", bench_engine},
    {"isolation", bench_isolation}, {"kafka", bench_kafka}, {"latency", bench_latency},
    {"pools", bench_pools}, {"state", bench_state}};

static const struct bench *find_bench(const char *name) {
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
        if (strcmp(benches[i].name, name) == 0) return &benches[i];
    return NULL;
}

int command_bench(int argc, char **argv) {
    struct bench_arguments arguments = {
        .rounds = 5, .milliseconds = 300, .messages = 200000, .instances = 4096};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
    const struct bench *bench = find_bench(arguments.which);
    if (bench == NULL) return cli_fail_usage("bench", "there is no bench '%s'", arguments.which);

    struct settings settings;
    int ret = cli_load_settings("bench", arguments.config, &settings);
    if (ret != CLI_OK) return ret;
    if (cli_override_driver(arguments.driver, &settings)) {
        struct error err;
        const struct bench_options options = {.settings = &settings,
            .table = {.bench = bench->name,
                .settings = &settings,
                .rounds = (unsigned)arguments.rounds,
                .is_json = arguments.is_json},
            .milliseconds = (uint32_t)arguments.milliseconds,
            .messages = arguments.messages,
            .instances = (uint32_t)arguments.instances};
        log_init(LOG_WARN,
            settings.log.format); /* every round starts and ends a worker, which would log that */
        if (bench->run(&options, &err) != ERR_OK) ret = cli_fail_error("bench", &err);
    } else {
        ret = cli_fail(CLI_USAGE, "bench", "--driver is cuda or cpu, not '%s'", arguments.driver);
    }
    settings_fini(&settings);
    return ret;
}

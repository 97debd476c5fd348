/* gpu-worker-bench: compares the worker with baselines, in the same process and in turns.
 * `gpu-worker bench` starts it. */

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench.h"
#include "bench/table.h"
#include "cli/cli.h"
#include "cli/kept_config.h"
#include "cli/options.h"
#include "process/inherited.h"

static const char about[] =
    "Compares the worker with a loop that does the same work and nothing else, in the same "
    "process,\n"
    "round after round in turns. Prints medians, with the least and the most.\n\n"
    "  arrays  array jobs from memory, and the same work as single jobs, against only copying as "
    "many\n"
    "          bytes to the device and back\n"
    "  engine  jobs from memory through the whole executor, against only the copies and "
    "launches;\n"
    "          and small ones against a loop that also reads the messages and encodes the results\n"
    "  state   the same jobs with a state file, against the same without one\n"
    "  isolation\n"
    "          the same jobs with each `batch.isolation`, with tenants that change seldom or "
    "always\n"
    "  kafka   jobs that do nothing or little, from topic to topic, against only consuming and "
    "producing,\n"
    "          with transactions and without; creates topics of its own on the configured brokers, "
    "and removes them\n"
    "  cost    nanoseconds of CPU that a small job costs, by thread and range, and context "
    "switches\n"
    "  latency one job at a time, from memory to its result, against the same copies and a launch\n"
    "  scale   jobs from memory on 1, 2, 4 ... devices at a time, with an executor process each, "
    "against\n"
    "          one device; and the baseline of `engine` in the same way\n"
    "  statics small jobs with a static that is on the device, against jobs without; and jobs a "
    "second\n"
    "          by how many of their statics are there\n"
    "  flat    small jobs over many statics, keys, partitions or programs, and over a hundredth "
    "of them,\n"
    "          against one\n"
    "  graphs  jobs of many launches with `batch.graphs: auto`, against the same with `none`\n"
    "  long    a job of many rounds in chunks, against the same in one visit to the device; and "
    "an array\n"
    "          whose instances are done one after the other, against the least that takes\n"
    "  sweep   the main job (trainings of 300 epochs) as single jobs, against one array of "
    "them\n"
    "  pools   taking and returning a block of the memory pools, by 1 to 16 threads, against free "
    "lists\n"
    "          behind mutexes\n";

static const char examples[] = "examples:\n"
                               "  gpu-worker bench engine --driver cuda\n"
                               "  gpu-worker bench kafka --config worker.yaml\n";

static const struct bench {
    const char *name;
    uint32_t milliseconds, instances; /* if not given */
    enum err (*run)(const struct bench_options *options, struct error *err);
} benches[] = {{"arrays", 300, 4096, bench_arrays}, {"cost", 300, 4096, bench_cost},
    {"engine", 300, 4096, bench_engine}, {"flat", 300, 4096, bench_flat},
    {"graphs", 300, 256, bench_graphs}, {"isolation", 300, 4096, bench_isolation},
    {"kafka", 300, 1, bench_kafka}, {"latency", 300, 4096, bench_latency},
    {"long", 300, 60000, bench_long}, {"pools", 300, 4096, bench_pools},
    {"scale", 2000, 1024, bench_scale}, {"state", 300, 4096, bench_state},
    {"statics", 300, 4096, bench_statics}, {"sweep", 300, 4096, bench_sweep}};

static const struct bench *find_bench(const char *name) {
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
        if (strcmp(benches[i].name, name) == 0) return &benches[i];
    return NULL;
}

struct bench_arguments {
    const struct bench *bench;
    const char *config, *driver;
    uint64_t rounds, milliseconds, messages, bytes, instances, iterations, many, devices;
    uint64_t device, board, work; /* of an executor that bench scale has started */
    bool is_json;
};

static int check_ranges(const struct bench_arguments *arguments) {
    const struct {
        const char *name;
        uint64_t value, least, most;
    } ranges[] = {{"rounds", arguments->rounds, 1, BENCH_ROUNDS_MAX},
        {"ms", arguments->milliseconds, 1, 60000}, {"messages", arguments->messages, 2, 1000000000},
        {"bytes", arguments->bytes, 0, BENCH_BYTES_MAX},
        {"instances", arguments->instances, 1, BENCH_INSTANCES_MAX},
        {"iterations", arguments->iterations, 1,
            arguments->bench->run == bench_graphs ? BENCH_LAUNCHES_MAX : BENCH_EPOCHS_MAX},
        {"many", arguments->many, BENCH_MANY_STEP, BENCH_MANY_MAX},
        {"devices", arguments->devices, 0, BENCH_DEVICES_MAX},
        {"device", arguments->device, 0, INT32_MAX}, {"board", arguments->board, 0, INT32_MAX},
        {"work", arguments->work, 0, INT32_MAX}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
            return cli_fail_usage("bench", "--%s is %" PRIu64 " to %" PRIu64, ranges[i].name,
                ranges[i].least, ranges[i].most);
    return arguments->bytes % sizeof(float) == 0
               ? CLI_OK
               : cli_fail_usage("bench", "--bytes is a multiple of %zu", sizeof(float));
}

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
            "about how long a round of the baseline takes (not for kafka), or of scale; 300 if "
            "not\n"
            "given, and 2000 for scale",
            .number = &ret->milliseconds},
        {"messages", "N", "messages in a round (only for kafka); 1000000 if not given",
            .number = &ret->messages},
        {"bytes", "N",
            "of each of the two buffers that a job adds (only for kafka); 0, for jobs that do "
            "nothing,\n"
            "if not given",
            .number = &ret->bytes},
        {"instances", "N",
            "instances of an array, and 16 times as many where they are small; jobs of graphs; "
            "4096,\n"
            "1024 for scale, 256 for graphs, 60000 for long (400 with driver cpu), and 1 for "
            "kafka,\n"
            "which then has single jobs, if not given",
            .number = &ret->instances},
        {"iterations", "N",
            "launches of a job (only for graphs), or epochs of the main job (only for scale and\n"
            "sweep; 1000 at most); 300 if not given",
            .number = &ret->iterations},
        {"many", "N", "how many are many (only for flat); 10000 if not given",
            .number = &ret->many},
        {"devices", "N",
            "at most so many devices (only for scale); all if not given; with driver cpu so many "
            "are\n"
            "simulated, 2 if not given",
            .number = &ret->devices},
        {"json", NULL, "print each row as a line of JSON, instead of a table",
            .flag = &ret->is_json},
        {"device", "N", "the device of an executor that bench scale has started", .is_hidden = true,
            .number = &ret->device},
        {"board", "N", "the descriptor of memory that it counts in", .is_hidden = true,
            .with = "device", .number = &ret->board},
        {"work", "N", "the number of what it runs", .is_hidden = true, .with = "device",
            .number = &ret->work},
        {0}};
    const struct cli_command command = {.name = "bench",
        .first = "arrays|cost|engine|flat|graphs|isolation|kafka|latency|long|pools|scale|state|"
                 "statics|sweep",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, ret_exit)) return false;
    ret->bench = find_bench(words[0]);
    if (ret->bench == NULL) {
        *ret_exit = cli_fail_usage("bench", "there is no bench '%s'", words[0]);
        return false;
    }
    if (ret->milliseconds == UINT64_MAX) ret->milliseconds = ret->bench->milliseconds;
    if (ret->instances == UINT64_MAX) ret->instances = ret->bench->instances;
    *ret_exit = check_ranges(ret);
    return *ret_exit == CLI_OK;
}

static int run(const struct bench_arguments *arguments, struct settings *settings) {
    struct error err;
    const struct bench_options options = {.settings = settings,
        .table = {.bench = arguments->bench->name,
            .settings = settings,
            .rounds = (unsigned)arguments->rounds,
            .is_json = arguments->is_json},
        .milliseconds = (uint32_t)arguments->milliseconds,
        .messages = arguments->messages,
        .bytes = arguments->bytes,
        .instances = (uint32_t)arguments->instances,
        .iterations = (uint32_t)arguments->iterations,
        .many = (uint32_t)arguments->many,
        .config = arguments->config,
        .devices = (uint32_t)arguments->devices,
        .board_fd = (int)arguments->board,
        .device = (uint32_t)arguments->device,
        .work = (uint32_t)arguments->work};
    /* every round starts and ends a worker, which would log that */
    log_init(LOG_WARN, settings->log.format);
    return arguments->bench->run(&options, &err) == ERR_OK ? CLI_OK : cli_fail_error("bench", &err);
}

/* Executors read it as well, so what is read from a pipe is kept. */
static int run_as_configured(struct bench_arguments *arguments) {
    struct settings settings;
    struct kept_config kept = {.fd = -1};
    struct error err;
    if (arguments->config != NULL) {
        if (kept_config_init(&kept, arguments->config, &err) != ERR_OK)
            return cli_fail(CLI_CONFIG, "bench", "%s; %s", err.message, err.fix);
        arguments->config = kept.path;
    }
    int ret = cli_load_settings("bench", arguments->config, &settings);
    if (ret == CLI_OK) {
        ret = cli_override_driver(arguments->driver, &settings)
                  ? run(arguments, &settings)
                  : cli_fail(
                        CLI_USAGE, "bench", "--driver is cuda or cpu, not '%s'", arguments->driver);
        settings_fini(&settings);
    }
    kept_config_fini(&kept);
    return ret;
}

static int bench(int argc, char **argv) {
    struct bench_arguments arguments = {.rounds = 5,
        .milliseconds = UINT64_MAX,
        .messages = 1000000,
        .instances = UINT64_MAX,
        .iterations = 300,
        .many = 10000};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
    return run_as_configured(&arguments);
}

int main(int argc, char **argv) {
    if (!inherited_mend()) return CLI_FAILED; /* and there may be nowhere to say so */
    /* a child of `scale` lists the devices, as one of a supervisor does */
    if (argc > 1 && strcmp(argv[1], "devices") == 0)
        return cli_finish("devices", command_devices(argc - 1, argv + 1));
    char name[] = "gpu-worker bench"; /* which getopt_long() puts before its messages */
    if (argc > 0) argv[0] = name;
    return cli_finish("bench", bench(argc, argv));
}

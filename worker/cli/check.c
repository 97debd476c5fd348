/* gpu-worker check: everything that is wrong with a configuration and its programs. */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "executor/connect.h"
#include "executor/fitness.h"
#include "settings/settings.h"

static const char usage[] =
    "usage: gpu-worker check --config FILE [--programs DIR] [--connect]\n"
    "\n"
    "Reads the configuration as `run` does, looks at its programs, folders, files, keys for\n"
    "librdkafka and addresses, and reports every problem with its place. What `run` refuses, it\n"
    "refuses. Starts nothing: no broker and no device is needed.\n"
    "\n"
    "  --config FILE    the configuration; - is standard input\n"
    "  --programs DIR   look for programs there instead of in programs.dir\n"
    "  --connect        also ask the brokers: whether they are there, take the user, password and\n"
    "                   certificates of kafka.consumer and kafka.producer, and know all topics.\n"
    "                   Writes nothing, so that a topic may be written to shows only in a run.\n"
    "\n"
    "example:\n"
    "  gpu-worker check --config worker.yaml\n";

static void print_problem(void *context, const struct error *err) {
    cli_fail(CLI_BROKER, "check", "%s; %s", err->message, err->fix);
}

static int check_connection(const struct settings *settings) {
    switch (connect_check(settings, print_problem, NULL)) {
    case ERR_OK: return CLI_OK;
    case ERR_CONFIG: return CLI_CONFIG;
    default: return CLI_BROKER;
    }
}

static int check(const char *config, const char *programs, bool connect) {
    const struct fitness_source source = {.config = config, .programs = programs};
    struct settings settings;
    struct problems problems;
    problems_init(&problems);
    struct registry *registry = fitness_read(&source, NULL, &settings, &problems);
    size_t count = registry != NULL ? registry_count(registry) : 0;
    int ret = CLI_OK;
    if (problems_any(&problems)) ret = cli_fail_problems("check", &problems);
    else if (connect) ret = check_connection(&settings);
    if (ret == CLI_OK) printf("ok: %s, %zu program%s\n", config, count, count == 1 ? "" : "s");
    problems_fini(&problems);
    registry_destroy(registry);
    settings_fini(&settings);
    return ret;
}

int command_check(int argc, char **argv) {
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"programs", required_argument, NULL, 'p'}, {"connect", no_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'}, {0}};
    const char *config = NULL, *programs = NULL;
    bool connect = false;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': config = optarg; break;
        case 'p': programs = optarg; break;
        case 'n': connect = true; break;
        case 'h': return cli_help(usage);
        default: return cli_fail_usage("check");
        }
    }
    if (optind != argc || config == NULL) return cli_fail_usage("check");
    return check(config, programs, connect);
}

/* gpu-worker check: reports everything that is wrong with a configuration and its programs. */
#include <stdio.h>

#include "broker/connect.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "pipeline/fitness.h"
#include "settings/settings.h"

static const char about[] =
    "Reads the configuration as `run` does, looks at its programs, folders, files, keys for\n"
    "librdkafka and addresses, and reports every problem with its position. It refuses what "
    "`run`\n"
    "refuses. It starts nothing: no broker and no device is needed.\n";

static const char examples[] = "example:\n"
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
    const char *config = NULL, *programs = NULL;
    bool connect = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration; - is standard input", CLI_MUST, .text = &config},
        {"programs", "DIR", "the folder of programs, instead of programs.dir", .text = &programs},
        {"connect", NULL,
            "also ask the brokers: whether they answer, accept the user, password and\n"
            "certificates of kafka.consumer and kafka.producer, and have all topics.\n"
            "It writes nothing, so it cannot tell whether a topic may be written to.",
            .flag = &connect},
        {0}};
    const struct cli_command command = {
        .name = "check", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    return check(config, programs, connect);
}

/* gpu-worker check: reports everything that is wrong with a configuration and its programs. */
#include <stdio.h>

#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "pipeline/connect.h"
#include "pipeline/fitness.h"
#include "settings/settings.h"

static const char about[] =
    "Reads the configuration as `run` does, looks at its programs, folders, files, keys for\n"
    "librdkafka and addresses, and reports every problem with its position. It refuses what "
    "`run`\n"
    "refuses. It starts nothing: no broker and no device is needed.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker check --config worker.yaml\n";

/* `context` is where problems are kept for JSON; NULL: they are printed as they come. */
static void take_problem(void *context, const struct error *err) {
    if (context == NULL) cli_fail(CLI_BROKER, "check", "%s; %s", err->message, err->fix);
    else problems_add(context, "brokers", 0, 0, err->fix, "%s", err->message);
}

static int check_connection(const struct settings *settings, struct problems *kept) {
    switch (connect_check(settings, take_problem, kept)) {
    case ERR_OK: return CLI_OK;
    case ERR_CONFIG: return CLI_CONFIG;
    default: return CLI_BROKER;
    }
}

static void print_json(const char *config, size_t programs, const struct problems *problems) {
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_bool(&json, "ok", !problems_any(problems));
    json_text(&json, "config", config);
    json_uint(&json, "programs", programs);
    json_array(&json, "problems");
    for (size_t i = 0; i < problems->count; i++) {
        json_object(&json, NULL);
        json_text(&json, "where", problems->items[i].where);
        json_text(&json, "what", problems->items[i].what);
        json_text(&json, "fix", problems->items[i].fix);
        json_end(&json);
    }
    json_end_line(&json);
}

static int check(const char *config, const char *programs, bool connect, bool is_json) {
    const struct fitness_source source = {.config = config, .programs = programs};
    struct settings settings;
    struct problems problems;
    problems_init(&problems);
    struct registry *registry = fitness_read(&source, NULL, &settings, &problems);
    size_t count = registry != NULL ? registry_count(registry) : 0;
    int ret = CLI_OK;
    if (problems_any(&problems)) ret = is_json ? CLI_CONFIG : cli_fail_problems("check", &problems);
    else if (connect) ret = check_connection(&settings, is_json ? &problems : NULL);
    if (is_json) print_json(config, count, &problems);
    else if (ret == CLI_OK) printf("ok: %s, %zu program%s\n", config, count, count == 1 ? "" : "s");
    problems_fini(&problems);
    registry_destroy(registry);
    settings_fini(&settings);
    return ret;
}

int command_check(int argc, char **argv) {
    const char *config = NULL, *programs = NULL;
    bool connect = false, is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration; - is standard input", CLI_MUST, .text = &config},
        {"programs", "DIR", "the folder of programs, instead of programs.dir", .text = &programs},
        {"connect", NULL,
            "also ask the brokers: whether they answer, accept the user, password and\n"
            "certificates of kafka.consumer and kafka.producer, have all topics, and take\n"
            "results of any allowed size, with or without a key.\n"
            "It writes nothing, so it cannot tell whether a topic may be written to.",
            .flag = &connect},
        {"json", NULL, "one JSON object with all problems, on standard output", .flag = &is_json},
        {0}};
    const struct cli_command command = {
        .name = "check", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    return check(config, programs, connect, is_json);
}

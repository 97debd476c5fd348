/* gpu-worker config: prints the defaults, the effective configuration or its schema. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "settings/settings.h"

static const char about[] =
    "  defaults        every setting with its default and help, as a file to start from\n"
    "  show            what a worker started with FILE would use; secrets are masked\n"
    "  schema          a JSON Schema of the file, for editors\n"
    "  table           all settings as a Markdown table\n";

static const char examples[] = "examples:\n"
                               "  gpu-worker config defaults > worker.yaml\n"
                               "  KAFKA=broker:9092 gpu-worker config show --config worker.yaml\n";

static int show(const char *path, bool is_json) {
    struct settings settings;
    int code = cli_load_settings("config", path, &settings);
    if (code != CLI_OK) return code;
    (is_json ? settings_print_json : settings_print)(&settings, stdout);
    settings_fini(&settings);
    return CLI_OK;
}

int command_config(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } pages[] = {{"defaults", settings_print_defaults}, {"schema", settings_print_schema},
        {"table", settings_print_table}};
    const char *config = NULL;
    bool is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "show: the configuration, - is standard input; without it, all defaults",
            .text = &config},
        {"json", NULL, "show: one JSON object", .flag = &is_json}, {0}};
    const struct cli_command command = {.name = "config",
        .first = "defaults|show|schema|table",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    if (strcmp(words[0], "show") == 0) return show(config, is_json);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(words[0], pages[i].name) == 0 && config == NULL && !is_json) {
            pages[i].print(stdout);
            return CLI_OK;
        }
    return cli_fail_usage("config", "--config and --json go only with show");
}

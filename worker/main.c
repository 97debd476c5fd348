/* gpu-worker: the table of its subcommands. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

static const struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"check", "check a configuration and the programs without starting anything", command_check},
    {"config", "print the defaults, the effective configuration or its schema", command_config},
    {"programs", "list the programs that jobs can name", command_programs},
    {"run", "take jobs from Kafka or a file, run them, publish their results", command_run},
    {"submit", "send one job that is written as YAML and print its result", command_submit},
    {"tail", "follow a topic of results or dead letters, decoded", command_tail},
    {"version", "print what this binary was built from", command_version},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static int help(void) {
    printf("usage: gpu-worker COMMAND [OPTIONS]\n"
           "\n"
           "Takes GPU jobs from Kafka, runs them, and publishes their results.\n"
           "\n"
           "commands (gpu-worker COMMAND --help says more):\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    return cli_help("\n"
                    "examples:\n"
                    "  gpu-worker config defaults > worker.yaml\n"
                    "  gpu-worker check --config worker.yaml\n"
                    "  gpu-worker programs\n");
}

static int refuse(const char *name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < COMMAND_COUNT; i++) nearest_offer(&nearest, commands[i].name);
    if (nearest.text == NULL)
        fprintf(stderr, "gpu-worker: unknown command '%s'; see gpu-worker --help\n", name);
    else
        fprintf(
            stderr, "gpu-worker: unknown command '%s'; did you mean '%s'?\n", name, nearest.text);
    return CLI_USAGE;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "gpu-worker: no command; see gpu-worker --help\n");
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) return help();
    if (strcmp(argv[1], "--version") == 0) argv[1] += 2;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, argv[1]) == 0) return commands[i].run(argc - 1, argv + 1);
    return refuse(argv[1]);
}

/* gpu-worker: the table of its subcommands. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "process/inherited.h"

static const struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"bench", "compare the worker with baselines: loops that do the same work", command_bench},
    {"cancel", "tell all workers not to run jobs that still wait", command_cancel},
    {"check", "check a configuration and the programs without starting anything", command_check},
    {"config", "print the defaults, the effective configuration or its schema", command_config},
    {"decode", "print messages that stand in a file", command_decode},
    {"demo", "start a worker with a broker inside it, and send it a job", command_demo},
    {"devices", "list the devices that the configured driver shows", command_devices},
    {"explain", "say where a job is, or what became of it", command_explain},
    {"programs", "list the programs that jobs can name", command_programs},
    {"replay", "send dead letters back to the topics that they came from", command_replay},
    {"resume", "show keys, programs and partitions refused after deaths, or allow them",
        command_resume},
    {"run", "take jobs from Kafka or a file, run them, publish their results", command_run},
    {"submit", "send one job that is written as YAML and print its result", command_submit},
    {"tail", "follow a topic of results or dead letters, and print it decoded", command_tail},
    {"top", "show what a running worker does", command_top},
    {"version", "print what this binary was built from", command_version},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static int help(void) {
    printf("usage: gpu-worker COMMAND [OPTIONS]\n"
           "\n"
           "Takes GPU jobs from Kafka, runs them, and publishes their results.\n"
           "\n"
           "commands (gpu-worker help COMMAND says more):\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    return cli_help("\n"
                    "examples:\n"
                    "  gpu-worker config defaults > worker.yaml\n"
                    "  gpu-worker check --config worker.yaml\n"
                    "  gpu-worker run --config worker.yaml\n");
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

/* The command gets "gpu-worker NAME" as argv[0], which getopt_long() puts before its messages. */
static int run(const struct command *command, int argc, char **argv) {
    char name[64];
    snprintf(name, sizeof name, "gpu-worker %s", command->name);
    argv[0] = name;
    return cli_finish(command->name, command->run(argc, argv));
}

static const struct command *find(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

int main(int argc, char **argv) {
    if (!inherited_mend()) return CLI_FAILED; /* and there may be nowhere to say so */
    if (argc < 2) {
        fprintf(stderr, "gpu-worker: no command; see gpu-worker --help\n");
        return CLI_USAGE;
    }
    const char *name = argv[1];
    char *help_of[] = {argv[0], "--help", NULL};
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return cli_finish("help", help());
    if (strcmp(name, "help") == 0) {
        if (argc == 2) return cli_finish("help", help());
        const struct command *command = find(argv[2]);
        return command != NULL ? run(command, 2, help_of) : refuse(argv[2]);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    const struct command *command = find(name);
    return command != NULL ? run(command, argc - 1, argv + 1) : refuse(name);
}

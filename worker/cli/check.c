/* gpu-worker check: everything that is wrong with a configuration and its programs. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "program/program.h"
#include "settings/settings.h"

static const char usage[] =
    "usage: gpu-worker check --config FILE [--programs DIR]\n"
    "\n"
    "Reads the configuration as `run` does, and the programs, and reports every problem with its\n"
    "place. Starts nothing: no broker and no device is needed.\n"
    "\n"
    "  --config FILE    the configuration; - is standard input\n"
    "  --programs DIR   look for programs there instead of in programs.dir\n"
    "\n"
    "example:\n"
    "  gpu-worker check --config worker.yaml\n";

/* Adds the problems of the programs; returns how many are fine. */
static size_t check_programs(
    const struct settings *settings, const char *override, struct problems *problems) {
    char *configured = settings_programs_dir(settings);
    const char *dir = override != NULL ? override : configured;
    struct registry *registry = dir != NULL ? registry_load(dir, problems) : NULL;
    if (registry == NULL) problems_add(problems, "programs", 0, 0, "", "out of memory");
    size_t count = registry != NULL ? registry_count(registry) : 0;
    registry_destroy(registry);
    free(configured);
    return count;
}

static int check(const char *config, const char *programs) {
    struct settings settings;
    struct problems problems;
    settings_init(&settings);
    problems_init(&problems);
    settings_load(&settings, config, &problems);
    size_t count = check_programs(&settings, programs, &problems);
    int ret = CLI_OK;
    if (problems_any(&problems)) ret = cli_fail_problems("check", &problems);
    else printf("ok: %s, %zu program%s\n", config, count, count == 1 ? "" : "s");
    problems_fini(&problems);
    settings_fini(&settings);
    return ret;
}

int command_check(int argc, char **argv) {
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"programs", required_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *config = NULL, *programs = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': config = optarg; break;
        case 'p': programs = optarg; break;
        case 'h': return cli_help(usage);
        default: return cli_fail_usage("check");
        }
    }
    if (optind != argc || config == NULL) return cli_fail_usage("check");
    return check(config, programs);
}

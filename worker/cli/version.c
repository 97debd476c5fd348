/* gpu-worker version: what this binary was built from. */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"

static const char usage[] =
    "usage: gpu-worker version\n"
    "\n"
    "Prints the version, the compiler, and the version of CUDA whose cuda.h was compiled\n"
    "against. Any driver of that version or newer will do.\n";

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

int command_version(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int option = getopt_long(argc, argv, "", options, NULL);
    if (option == 'h') return cli_help(usage);
    if (option != -1 || optind != argc) return cli_fail_usage("version");
    printf("gpu-worker %s\ncompiler %s\ncuda.h %d.%d\n", GPU_WORKER_VERSION, COMPILER,
        GPU_WORKER_CUDA_VERSION / 1000, GPU_WORKER_CUDA_VERSION % 1000 / 10);
    return CLI_OK;
}

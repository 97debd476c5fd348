/* gpu-worker version: prints what this binary was built from, and what it can do. */
#include <stdio.h>

#include "broker/version.h"
#include "cli/cli.h"
#include "cli/commit.h"
#include "cli/options.h"

static const char about[] =
    "Prints the version, the commit, how it was built, and its features: the drivers, librdkafka\n"
    "as it was compiled against and as it is loaded, the version of CUDA whose cuda.h was "
    "compiled\n"
    "against (any driver of that version or newer will do), and NVTX.\n";

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

int command_version(int argc, char **argv) {
    char **words;
    int ret;
    const struct cli_command command = {.name = "version", .about = about};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    printf("gpu-worker %s\ncommit %s\nbuild %s\ncompiler %s\n", GPU_WORKER_VERSION,
        GPU_WORKER_COMMIT, GPU_WORKER_BUILD_TYPE[0] != 0 ? GPU_WORKER_BUILD_TYPE : "none",
        COMPILER);
    printf("drivers cuda cpu\ncuda.h %d.%d\n", GPU_WORKER_CUDA_VERSION / 1000,
        GPU_WORKER_CUDA_VERSION % 1000 / 10);
    struct broker_version version = broker_version();
    printf("librdkafka %s, built against %s\n"
           "nvtx if profile.nvtx_library names a library\n",
        version.loaded, version.built);
    return CLI_OK;
}

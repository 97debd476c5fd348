/* gpu-worker version: prints what this binary was built from, and what it can do. */
#include <stdio.h>

#include "base/json_writer.h"
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

#define BUILD (GPU_WORKER_BUILD_TYPE[0] != 0 ? GPU_WORKER_BUILD_TYPE : "none")

static void print_json(const struct broker_version *librdkafka) {
    struct json_writer json = {.out = stdout};
    char cuda_h[16];
    snprintf(cuda_h, sizeof cuda_h, "%d.%d", GPU_WORKER_CUDA_VERSION / 1000,
        GPU_WORKER_CUDA_VERSION % 1000 / 10);
    json_object(&json, NULL);
    json_text(&json, "version", GPU_WORKER_VERSION);
    json_text(&json, "commit", GPU_WORKER_COMMIT);
    json_text(&json, "build", BUILD);
    json_text(&json, "compiler", COMPILER);
    json_array(&json, "drivers");
    json_text(&json, NULL, "cuda");
    json_text(&json, NULL, "cpu");
    json_end(&json);
    json_text(&json, "cuda_h", cuda_h);
    json_object(&json, "librdkafka");
    json_text(&json, "loaded", librdkafka->loaded);
    json_text(&json, "built", librdkafka->built);
    json_end_line(&json);
}

int command_version(int argc, char **argv) {
    bool is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {{"json", NULL, "one JSON object", .flag = &is_json}, {0}};
    const struct cli_command command = {.name = "version", .about = about, .options = options};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    struct broker_version version = broker_version();
    if (is_json) {
        print_json(&version);
        return CLI_OK;
    }
    printf("gpu-worker %s\ncommit %s\nbuild %s\ncompiler %s\n", GPU_WORKER_VERSION,
        GPU_WORKER_COMMIT, BUILD, COMPILER);
    printf("drivers cuda cpu\ncuda.h %d.%d\n", GPU_WORKER_CUDA_VERSION / 1000,
        GPU_WORKER_CUDA_VERSION % 1000 / 10);
    printf("librdkafka %s, built against %s\n"
           "nvtx if profile.nvtx_library names a library\n",
        version.loaded, version.built);
    return CLI_OK;
}

/* gpu-worker bench: starts gpu-worker-bench, which stands beside this program. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define SUFFIX "-bench"

int command_bench(int argc, char **argv) {
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - sizeof SUFFIX);
    if (size < 0)
        return cli_fail(CLI_FAILED, "bench", "where this program is: %s", strerror(errno));
    memcpy(path + size, SUFFIX, sizeof SUFFIX);
    execv(path, argv);
    return cli_fail(CLI_FAILED, "bench",
        "%s: %s; install the whole package, or build the target gpu-worker-bench", path,
        strerror(errno));
}

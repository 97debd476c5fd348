#include "cli/kit.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { ARGUMENTS_MAX = 64 };

bool kit_takes(const char *word) {
    static const char *const words[] = {"new", "build", "test", "import"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], word) == 0) return true;
    return false;
}

/* Tells the kit where this worker is, and Python where the kit is: in share/ beside bin/. */
static bool set_environment(void) {
    char binary[PATH_MAX], folder[PATH_MAX], path[4 * PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", binary, sizeof binary - 1);
    const char *before = getenv("PYTHONPATH");
    if (size <= 0) return false;
    binary[size] = 0;
    memcpy(folder, binary, (size_t)size + 1);
    int used = snprintf(path, sizeof path, "%s/../share/gpu-worker/python%s%s", dirname(folder),
        before != NULL ? ":" : "", before != NULL ? before : "");
    return used < (int)sizeof path && setenv("GPU_WORKER_BINARY", binary, 1) == 0 &&
           setenv("PYTHONPATH", path, 1) == 0 &&
           /* the folder where it is called brings no modules */
           setenv("PYTHONSAFEPATH", "1", 1) == 0 &&
           /* and the kit's own folder stays as it was installed */
           setenv("PYTHONDONTWRITEBYTECODE", "1", 1) == 0;
}

int kit_run(char **argv) {
    const char *arguments[ARGUMENTS_MAX + 1] = {"python3", "-m", "gpu_worker_kit"};
    size_t count = 3;
    for (size_t i = 1; argv[i] != NULL; i++) {
        if (count == ARGUMENTS_MAX) return cli_fail_usage("programs", "there are too many words");
        arguments[count++] = argv[i];
    }
    if (set_environment()) execvp("python3", (char *const *)(uintptr_t)arguments);
    return cli_fail(
        CLI_FAILED, "programs", "python3: %s; install Python 3.9 or newer", strerror(errno));
}

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

/* Python looks for modules only where it is installed and in the folder that is its argument:
 * neither where it is called nor where PYTHONPATH says. */
static const char start[] = "import runpy, site, sys\n"
                            "sys.path.insert(0, sys.argv.pop(1))\n"
                            "site.addsitedir(site.getusersitepackages())\n"
                            "runpy.run_module('gpu_worker_kit', run_name='__main__')\n";

/* Finds the kit, in share/ beside bin/, and tells it where this worker is. */
static bool find_kit(char ret[static 2 * PATH_MAX]) {
    char binary[PATH_MAX], folder[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", binary, sizeof binary - 1);
    if (size <= 0) return false;
    binary[size] = 0;
    memcpy(folder, binary, (size_t)size + 1);
    snprintf(ret, 2 * PATH_MAX, "%s/../share/gpu-worker/python", dirname(folder));
    return setenv("GPU_WORKER_BINARY", binary, 1) == 0;
}

int kit_run(char **argv) {
    char kit[2 * PATH_MAX];
    /* isolated; and the kit's own folder stays as it was installed */
    const char *arguments[ARGUMENTS_MAX + 1] = {"python3", "-I", "-B", "-c", start, kit};
    size_t count = 6;
    for (size_t i = 1; argv[i] != NULL; i++) {
        if (count == ARGUMENTS_MAX) return cli_fail_usage("programs", "there are too many words");
        arguments[count++] = argv[i];
    }
    if (find_kit(kit)) execvp("python3", (char *const *)(uintptr_t)arguments);
    return cli_fail(
        CLI_FAILED, "programs", "python3: %s; install Python 3.9 or newer", strerror(errno));
}

#include "executor/fitness.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct registry *fitness_load_programs(
    const struct settings *settings, const char *dir, struct problems *problems) {
    char *configured = settings_programs_dir(settings);
    if (dir == NULL) dir = configured;
    struct registry *registry = dir != NULL ? registry_load(dir, problems) : NULL;
    if (registry == NULL) problems_add(problems, "programs", 0, 0, "", "out of memory");
    free(configured);
    return registry;
}

/* 0, or the errno of what is wrong. */
static int try_folder(const char *path, int mode) {
    struct stat status;
    if (stat(path, &status) != 0) return errno;
    if (!S_ISDIR(status.st_mode)) return ENOTDIR;
    return access(path, mode) == 0 ? 0 : errno;
}

/* One that is missing is made by `run`, in a folder that must be there. */
static int try_parent(const char *path) {
    char *copy = strdup(path);
    int ret = copy != NULL ? try_folder(dirname(copy), W_OK | X_OK) : ENOMEM;
    free(copy);
    return ret;
}

static void check_folder(
    const char *setting, const char *path, int mode, struct problems *problems) {
    if (path[0] == 0) return;
    int native = try_folder(path, mode);
    if (native == ENOENT) native = try_parent(path);
    if (native != 0)
        problems_add(problems, path, 0, 0, "make it a folder that the worker can use", "%s: %s",
            setting, strerror(native));
}

void fitness_check_folders(const struct settings *settings, struct problems *problems) {
    bool are_outputs_stored = settings->results.inline_max_bytes > 0;
    check_folder("blobs.dir", settings->blobs.dir,
        are_outputs_stored ? R_OK | W_OK | X_OK : R_OK | X_OK, problems);
    check_folder("blobs.cache_dir", settings->blobs.cache_dir, R_OK | W_OK | X_OK, problems);
    /* All of its path is made where it is missing. */
    struct stat status;
    if (settings->state.dir[0] != 0 && stat(settings->state.dir, &status) == 0)
        check_folder("state.dir", settings->state.dir, R_OK | W_OK | X_OK, problems);
}

#include "executor/fitness.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct registry *fitness_load_programs(const struct settings *settings, const char *dir,
    const struct registry *earlier, struct problems *problems) {
    char *configured = settings_programs_dir(settings);
    if (dir == NULL) dir = configured;
    struct registry *registry = dir != NULL ? registry_load_again(dir, earlier, problems) : NULL;
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

static void check_folders(const struct settings *settings, struct problems *problems) {
    bool are_outputs_stored = settings->results.inline_max_bytes > 0;
    check_folder("blobs.dir", settings->blobs.dir,
        are_outputs_stored ? R_OK | W_OK | X_OK : R_OK | X_OK, problems);
    check_folder("blobs.cache_dir", settings->blobs.cache_dir, R_OK | W_OK | X_OK, problems);
    /* All of its path is made where it is missing. */
    struct stat status;
    if (settings->state.dir[0] != 0 && stat(settings->state.dir, &status) == 0)
        check_folder("state.dir", settings->state.dir, R_OK | W_OK | X_OK, problems);
}

struct registry *fitness_read(const struct fitness_source *source, const struct registry *earlier,
    struct settings *settings, struct problems *problems) {
    const char *path = source->config;
    settings_init(settings);
    if (source->text.data == NULL) settings_load(settings, path, problems);
    else
        settings_parse(
            settings, strcmp(path, "-") == 0 ? "standard input" : path, source->text, problems);
    if (source->driver != NULL) settings->driver = *source->driver;
    struct registry *ret = fitness_load_programs(settings, source->programs, earlier, problems);
    check_folders(settings, problems);
    return ret;
}

enum err fitness_read_again(const struct fitness_source *source, const struct settings *running,
    const struct registry *earlier, struct reading *ret, struct error *err) {
    struct problems problems;
    problems_init(&problems);
    ret->registry = fitness_read(source, earlier, &ret->settings, &problems);
    ret->changes = settings_find_fixed_changes(running, &ret->settings);
    if (!problems_any(&problems))
        settings_keep_fixed(running, &ret->settings,
            source->config != NULL ? source->config : "defaults", &problems);
    enum err code = problems_check(&problems, err);
    problems_fini(&problems);
    if (code != ERR_OK) reading_fini(ret);
    return code;
}

void reading_fini(struct reading *reading) {
    registry_destroy(reading->registry);
    settings_fini(&reading->settings);
    *reading = (struct reading){0};
}

void reading_log_fixed(const struct reading *reading) {
    char text[FIXED_CHANGES_TEXT_SIZE];
    if (reading->changes.count > 0)
        log_line(LOG_WARN, "%s", fixed_changes_describe(&reading->changes, text));
}

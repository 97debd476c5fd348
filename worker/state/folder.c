#include "state/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static enum err fail_io(struct error *err, const char *what, const char *path) {
    int native = errno;
    return error_set(err, ERR_CONFIG, native,
        "set state.dir to a folder on this machine that can be written", "%s %s: %s", what, path,
        strerror(native));
}

static enum err no_memory(struct error *err) {
    return error_no_memory(err, "no memory for a path");
}

enum err state_folder_make(const char *path, struct error *err) {
    char *part = strdup(path);
    if (part == NULL) return no_memory(err);
    bool is_made = true;
    for (char *slash = part; is_made && slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) *slash = 0;
        is_made = mkdir(part, 0700) == 0 || errno == EEXIST;
        if (slash != NULL) *slash = '/';
    }
    enum err code = is_made ? ERR_OK : fail_io(err, "making", path);
    free(part);
    return code;
}

static bool read_name(const char *path, char ret[static STATE_INSTANCE_SIZE]) {
    char *text;
    size_t size;
    struct error why;
    if (file_read(path, STATE_INSTANCE_SIZE, &text, &size, &why) != ERR_OK) return false;
    bool is_name = size == STATE_INSTANCE_SIZE - 1 && strspn(text, "0123456789abcdef") == size;
    if (is_name) memcpy(ret, text, STATE_INSTANCE_SIZE);
    free(text);
    return is_name;
}

/* Replaces what is there. The caller has the lock of the folder. */
static enum err draw_name(const char *path, struct error *err) {
    uint64_t name;
    char text[STATE_INSTANCE_SIZE];
    bool is_drawn = getrandom(&name, sizeof name, 0) == sizeof name;
    snprintf(text, sizeof text, "%016" PRIx64, name);
    is_drawn = is_drawn && file_replace(path, 0600, slice_of_text(text));
    return is_drawn ? ERR_OK : fail_io(err, "writing", path);
}

/* When several processes start at once, the first one decides; a name that is one stays. */
static enum err find_or_draw_name(
    const char *folder, const char *path, char ret[static STATE_INSTANCE_SIZE], struct error *err) {
    if (read_name(path, ret)) return ERR_OK;
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) {
        enum err code = fail_io(err, "locking", folder);
        if (lock >= 0) close(lock);
        return code;
    }
    enum err code = ERR_OK;
    if (!read_name(path, ret)) {
        code = draw_name(path, err);
        if (code == ERR_OK && !read_name(path, ret)) code = fail_io(err, "reading", path);
    }
    close(lock);
    return code;
}

enum err state_folder_instance(
    const char *folder, char ret[static STATE_INSTANCE_SIZE], struct error *err) {
    char *path;
    if (asprintf(&path, "%s/instance", folder) < 0) return no_memory(err);
    enum err code = find_or_draw_name(folder, path, ret, err);
    free(path);
    return code;
}

char *state_folder_file(const char *folder, uint32_t device) {
    char *ret;
    return asprintf(&ret, "%s/gpu%" PRIu32 ".state", folder, device) < 0 ? NULL : ret;
}

#include "cli/own_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { LOCK_TIMEOUT_MS = 20000 };

static enum err no_memory(struct error *err) {
    return error_no_memory(err, "no memory for a path");
}

enum err own_state_open(const char *path, struct state **ret, struct error *err) {
    struct error set_aside;
    enum err code = state_open(path, LOCK_TIMEOUT_MS, ret, &set_aside, err);
    if (code == ERR_OK && set_aside.code != ERR_OK)
        log_error(LOG_WARN, "the state file was set aside, as PATH.damaged", &set_aside);
    return code;
}

enum err own_state_forget(const char *folder, uint32_t device, struct error *err) {
    struct state *state = NULL;
    char *path = state_folder_file(folder, device);
    enum err code = path != NULL ? own_state_open(path, &state, err) : no_memory(err);
    state_forget(state);
    state_close(state);
    free(path);
    return code;
}

enum err own_state_identify(
    const char *path, uint32_t device, struct instance *ret, struct error *err) {
    char *folder = strdup(path);
    if (folder == NULL) return no_memory(err);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = 0;
    enum err code = state_folder_instance(slash != NULL ? folder : ".", ret->name, err);
    free(folder);
    if (code == ERR_OK) ret->owner = strtoull(ret->name, NULL, 16) + device;
    return code;
}

#include "gpu/profile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct profile_hooks profile_hooks;
static struct profile_hooks hooks_without_library;

static enum err unusable(const char *library, const char *reason, struct error *err) {
    return error_set(err, ERR_CONFIG, 0,
        "set profile.nvtx_library to a libnvToolsExt.so.1, or remove it", "no NVTX in '%s': %s",
        library, reason != NULL ? reason : "unknown");
}

static enum err open_library(
    const char *library, void **handle, struct profile_hooks *ret, struct error *err) {
    struct error why;
    int fd;
    if (strchr(library, '/') != NULL) { /* dlopen() would wait for a pipe's other end */
        if (file_open(library, O_RDONLY, &fd, &why) != ERR_OK)
            return unusable(library, why.message, err);
        close(fd);
    }
    *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) return unusable(library, dlerror(), err);
    void *push = dlsym(*handle, "nvtxRangePushA"), *pop = dlsym(*handle, "nvtxRangePop");
    if (push == NULL || pop == NULL) {
        enum err code = unusable(library, dlerror(), err);
        dlclose(*handle);
        return code;
    }
    *ret = (struct profile_hooks){
        .push = (__typeof__(profile_hooks.push))push, .pop = (__typeof__(profile_hooks.pop))pop};
    return ERR_OK;
}

void profile_use(struct profile_hooks hooks) {
    hooks_without_library = hooks;
}

enum err profile_open(const char *library, struct error *err) {
    void *handle; /* never closed: threads may be inside it */
    profile_hooks = hooks_without_library;
    return library[0] == 0 ? ERR_OK : open_library(library, &handle, &profile_hooks, err);
}

enum err profile_check(const char *library, struct error *err) {
    void *handle;
    struct profile_hooks hooks;
    if (library[0] == 0) return ERR_OK;
    enum err code = open_library(library, &handle, &hooks, err);
    if (code == ERR_OK) dlclose(handle);
    return code;
}

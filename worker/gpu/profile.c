#include "gpu/profile.h"

#include <dlfcn.h>

struct profile_hooks profile_hooks;

static enum err unusable(const char *library, struct error *err) {
    const char *reason = dlerror();
    return error_set(err, ERR_CONFIG, 0,
        "set profile.nvtx_library to a libnvToolsExt.so.1, or drop it", "no NVTX in '%s': %s",
        library, reason != NULL ? reason : "unknown");
}

enum err profile_open(const char *library, struct error *err) {
    profile_hooks = (struct profile_hooks){0};
    if (library[0] == 0) return ERR_OK;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* stays: threads may be inside it */
    if (handle == NULL) return unusable(library, err);
    void *push = dlsym(handle, "nvtxRangePushA"), *pop = dlsym(handle, "nvtxRangePop");
    if (push == NULL || pop == NULL) return unusable(library, err);
    profile_hooks = (struct profile_hooks){
        .push = (__typeof__(profile_hooks.push))push, .pop = (__typeof__(profile_hooks.pop))pop};
    return ERR_OK;
}

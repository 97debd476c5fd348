#include "gpu/nvidia_library.h"

#include <dlfcn.h>
#include <stdio.h>

void *nvidia_library_open(const char *name, struct error *err) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) return library;
    char why[128], mounted[64];
    snprintf(why, sizeof why, "%s", dlerror());
    snprintf(mounted, sizeof mounted, "/usr/local/nvidia/lib64/%s", name);
    library = dlopen(mounted, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        error_set(err, ERR_NO_DEVICE, 0,
            "install the NVIDIA driver (in a container: the NVIDIA runtime), or set driver: cpu",
            "cannot open %s: %s; %s", name, why, dlerror());
    return library;
}

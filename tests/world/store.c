#include "world/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "world/scheduler.h"

static uint64_t *failing_until_ns; /* in the region */

void store_make(const char *folder) {
    static const float halves[] = {0.5f, 0.5f};
    char path[1024];
    failing_until_ns = scheduler_alloc(sizeof *failing_until_ns);
    snprintf(path, sizeof path, "%s/%.2s", folder, STORE_HALVES);
    if (mkdir(folder, 0700) != 0 || mkdir(path, 0700) != 0) abort();
    snprintf(path, sizeof path, "%s/%.2s/" STORE_HALVES, folder, STORE_HALVES);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(halves, sizeof halves, 1, file) != 1 || fclose(file) != 0) abort();
}

void store_fail_until(uint64_t until_ns) {
    *failing_until_ns = until_ns;
}

/* The worker opens nothing else of this name. */
static bool is_failing(const char *name) {
    return failing_until_ns != NULL && scheduler_now_ns() < *failing_until_ns &&
           strcmp(name, STORE_HALVES) == 0;
}

int __real_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (!is_failing(name)) return __real_openat(folder, name, flags, mode);
    errno = EIO;
    return -1;
}

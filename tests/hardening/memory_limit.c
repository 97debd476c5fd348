/* Preloaded, it bounds the memory of a process: as much as MEMORY_LIMIT_KIB says beside what it has
 * when it starts, which with a sanitizer is the map of all its addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static rlim_t kib_of_now(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) abort();
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmData: %llu kB", &kib) == 1) break;
    fclose(file);
    return kib;
}

__attribute__((constructor)) static void limit(void) {
    const char *more = getenv("MEMORY_LIMIT_KIB");
    struct rlimit data;
    if (more == NULL) return;
    if (getrlimit(RLIMIT_DATA, &data) != 0) abort();
    data.rlim_cur = (kib_of_now() + strtoull(more, NULL, 10)) << 10;
    if (setrlimit(RLIMIT_DATA, &data) != 0) abort();
}

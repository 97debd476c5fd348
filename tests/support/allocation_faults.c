#include "support/allocation_faults.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local uint64_t failing, seen;

void allocation_faults_arm(uint64_t nth) {
    failing = nth;
    seen = 0;
}

bool allocation_faults_end(void) {
    bool has_failed = seen >= failing;
    failing = 0;
    return has_failed;
}

static bool fails(void) {
    return failing != 0 && ++seen == failing;
}

/* --- in the place of what the code calls --- */

#define FAILING(name, parameters, arguments)                                                       \
    void *__real_##name parameters;                                                                \
    void *__wrap_##name parameters;                                                                \
    void *__wrap_##name parameters {                                                               \
        return fails() ? NULL : __real_##name arguments;                                           \
    }

FAILING(malloc, (size_t size), (size))
FAILING(calloc, (size_t count, size_t size), (count, size))
FAILING(realloc, (void *memory, size_t size), (memory, size))
FAILING(reallocarray, (void *memory, size_t count, size_t size), (memory, count, size))
FAILING(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
FAILING(strdup, (const char *text), (text))
FAILING(strndup, (const char *text, size_t size), (text, size))

int __wrap_asprintf(char **ret, const char *format, ...);

__attribute__((format(printf, 2, 3))) int __wrap_asprintf(char **ret, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = fails() ? -1 : vasprintf(ret, format, arguments);
    va_end(arguments);
    return size;
}

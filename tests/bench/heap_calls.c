/*
 * Counts what a process asks of its heap, and writes it as the process ends: loaded before the C
 * library, it stands in front of whatever malloc() the process has. HEAP_CALLS names the file; each
 * process adds a line "takes returns".
 *
 * Lifetime: of the process. Threads: any.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY_BYTES = 1 << 16 };

static atomic_uint_fast64_t takes, returns;
/* dlsym() itself may take memory before the real functions are known; that is never returned. */
static _Alignas(16) char early[EARLY_BYTES];
static atomic_size_t early_used;

static int is_early(const void *block) {
    return (const char *)block >= early && (const char *)block < early + EARLY_BYTES;
}

static void *take_early(size_t bytes) {
    size_t at = atomic_fetch_add(&early_used, (bytes + 15) & ~(size_t)15);
    return at + bytes <= EARLY_BYTES ? early + at : NULL;
}

/* `real` is the function behind ours; NULL while it is being looked for. */
#define REAL(name)                                                                                 \
    static _Atomic(__typeof__(&name)) found;                                                       \
    static _Thread_local int is_looking;                                                           \
    /* relaxed: whoever looks finds the same */                                                    \
    __typeof__(&name) real = atomic_load_explicit(&found, memory_order_relaxed);                   \
    if (real == NULL && !is_looking) {                                                             \
        is_looking = 1;                                                                            \
        real = (__typeof__(real))dlsym(RTLD_NEXT, #name);                                          \
        is_looking = 0;                                                                            \
        atomic_store_explicit(&found, real, memory_order_relaxed);                                 \
    }

static void count(atomic_uint_fast64_t *counter) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void *malloc(size_t bytes) {
    REAL(malloc)
    count(&takes);
    return real != NULL ? real(bytes) : take_early(bytes);
}

void *calloc(size_t items, size_t bytes) {
    REAL(calloc)
    count(&takes);
    return real != NULL ? real(items, bytes) : take_early(items * bytes); /* zero already */
}

void *realloc(void *block, size_t bytes) {
    REAL(realloc)
    count(&takes);
    if (real != NULL && !is_early(block)) return real(block, bytes);
    void *grown = malloc(bytes);
    if (grown != NULL && block != NULL) memcpy(grown, block, bytes);
    return grown;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    REAL(aligned_alloc)
    count(&takes);
    return real != NULL ? real(alignment, bytes) : NULL;
}

int posix_memalign(void **ret, size_t alignment, size_t bytes) {
    REAL(posix_memalign)
    count(&takes);
    return real != NULL ? real(ret, alignment, bytes) : ENOMEM;
}

void free(void *block) {
    REAL(free)
    if (block == NULL || is_early(block)) return;
    count(&returns);
    if (real != NULL) real(block);
}

__attribute__((destructor)) static void write_counts(void) {
    const char *path = getenv("HEAP_CALLS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fprintf(file, "%" PRIu64 " %" PRIu64 "\n", (uint64_t)atomic_load(&takes),
        (uint64_t)atomic_load(&returns));
    fclose(file);
}

#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4096 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *arena, size_t reserved_max) {
    *arena = (struct arena){.reserved_max = reserved_max};
}

void arena_fini(struct arena *arena) {
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->used = 0;
    arena->reserved = 0;
}

static bool arena_grow(struct arena *arena, size_t size) {
    size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    if (bytes > arena->reserved_max - arena->reserved) bytes = size;
    if (bytes > arena->reserved_max - arena->reserved) return false;
    struct arena_chunk *chunk = malloc(sizeof *chunk + bytes);
    if (chunk == NULL) return false;
    chunk->next = arena->chunks;
    chunk->size = bytes;
    arena->chunks = chunk;
    arena->used = 0;
    arena->reserved += bytes;
    return true;
}

/* False if the result would overflow. */
static bool round_up(size_t size, size_t *ret) {
    if (__builtin_add_overflow(size, alignof(max_align_t) - 1, ret)) return false;
    *ret &= ~(alignof(max_align_t) - 1);
    return true;
}

/* `bytes` must be rounded up. */
static void *take(struct arena *arena, size_t bytes) {
    if (arena->chunks == NULL || bytes > arena->chunks->size - arena->used)
        if (!arena_grow(arena, bytes)) return NULL;
    void *ret = arena->chunks->data + arena->used;
    arena->used += bytes;
    return ret;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !round_up(bytes, &bytes)) return NULL;
    void *ret = take(arena, bytes);
    return ret != NULL ? memset(ret, 0, bytes) : NULL;
}

void *arena_alloc_beyond(struct arena *arena, size_t size) {
    size_t bytes;
    if (!round_up(size, &bytes)) return NULL;
    if (__builtin_add_overflow(arena->reserved_max, bytes, &arena->reserved_max))
        arena->reserved_max = SIZE_MAX;
    return take(arena, bytes);
}

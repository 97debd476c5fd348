#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4096 };

struct arena_chunk {
    struct arena_chunk *next;
    alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *arena, size_t reserved_max) {
    *arena = (struct arena){.reserved_max = reserved_max};
}

void arena_init_within(struct arena *arena, size_t reserved_max, void *memory, size_t size) {
    *arena =
        (struct arena){.next = memory, .left = size, .is_lent = true, .reserved_max = reserved_max};
}

void arena_fini(struct arena *arena) {
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->next = NULL;
    arena->left = 0;
    arena->reserved = 0;
}

/* `size` bytes of a new chunk, which is the one in use from now on if it has more left than the one
 * before. NULL: the ceiling, or the host's memory, is reached. */
static uint8_t *take_from_new(struct arena *arena, size_t size) {
    size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    if (bytes > arena->reserved_max - arena->reserved) bytes = size;
    if (bytes > arena->reserved_max - arena->reserved) return NULL;
    struct arena_chunk *chunk = malloc(sizeof *chunk + bytes);
    if (chunk == NULL) return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->reserved += bytes;
    if (bytes - size < arena->left) return chunk->data;
    arena->next = chunk->data + size;
    arena->left = bytes - size;
    arena->is_lent = false;
    return chunk->data;
}

/* False where the sum is larger than any size. */
static bool round_up(size_t size, size_t *ret) {
    if (__builtin_add_overflow(size, alignof(max_align_t) - 1, ret)) return false;
    *ret &= ~(alignof(max_align_t) - 1);
    return true;
}

/* `bytes` are rounded up. */
static void *take(struct arena *arena, size_t bytes) {
    bool is_allowed = !arena->is_lent || bytes <= arena->reserved_max - arena->reserved;
    if (arena->next == NULL || bytes > arena->left || !is_allowed)
        return take_from_new(arena, bytes);
    if (arena->is_lent) arena->reserved += bytes;
    void *ret = arena->next;
    arena->next += bytes;
    arena->left -= bytes;
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

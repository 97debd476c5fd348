/**
 * A bump allocator with a ceiling: what one message makes us allocate is freed at once, and is
 * never more than the ceiling, whatever the message claims.
 *
 * Units: bytes. Lifetime: what it returns lives until arena_fini(). Threads: one at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* the newest first */
    size_t used;                /* in the newest chunk */
    size_t reserved;            /* over all chunks */
    size_t reserved_max;
};

void arena_init(struct arena *arena, size_t reserved_max);
void arena_fini(struct arena *arena);

/**
 * `count` zeroed items of `size` bytes, aligned for any type; NULL when the ceiling or the host's
 * memory is reached, or when count x size overflows. Zero items give a pointer that must not be
 * read.
 */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/**
 * `size` bytes on top of the ceiling, aligned for any type and not zeroed: for what we need beside
 * the message, and bound ourselves. NULL when the host's memory is short.
 */
void *arena_alloc_beyond(struct arena *arena, size_t size);

#endif

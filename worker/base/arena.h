/**
 * A bump allocator with a ceiling. All that one message makes the worker allocate is freed in one
 * step, and never exceeds the ceiling, whatever the message claims.
 *
 * Units: bytes. Lifetime: what it returns lives until arena_fini(). Threads: one at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* the newest first */
    uint8_t *next;              /* memory that is not used yet, of one chunk */
    size_t left;
    bool is_lent;    /* that memory is not a chunk, but the caller's */
    size_t reserved; /* over all chunks, and what is used of the caller's memory */
    size_t reserved_max;
};

void arena_init(struct arena *arena, size_t reserved_max);

/** As arena_init(), with memory of the caller's that is used first; aligned for any type. That
 * memory outlives the arena. */
void arena_init_within(struct arena *arena, size_t reserved_max, void *memory, size_t size);

void arena_fini(struct arena *arena);

/**
 * `count` zeroed items of `size` bytes, aligned for any type; NULL when the ceiling or the host's
 * memory is reached, or when count x size overflows. Zero items give a pointer that must not be
 * read.
 */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/**
 * `size` bytes that do not count against the ceiling, aligned for any type and not zeroed. For
 * memory whose size the worker bounds, not the message. NULL: out of memory.
 */
void *arena_alloc_beyond(struct arena *arena, size_t size);

#endif

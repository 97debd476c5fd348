/** Memory for structures with members that have cache lines of their own. Threads: any. */
#ifndef BASE_ALIGNED_H
#define BASE_ALIGNED_H

#include <stdlib.h>
#include <string.h>

/**
 * calloc() with an alignment, of which `bytes` is a multiple, as the size of a structure is. free()
 * ends it. NULL when memory is short.
 */
static inline void *aligned_calloc(size_t alignment, size_t bytes) {
    void *memory = aligned_alloc(alignment, bytes);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

#endif

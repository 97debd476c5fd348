#include "base/heap.h"

#include <malloc.h>

enum {
    KEPT_BYTES = 64 << 20,
    GROWTH_BYTES = 4 << 20, /* taken with each system call */
    MAPPED_BYTES_MIN =
        32 << 20, /* the largest value that the library accepts; smaller blocks are reused */
};

void heap_keep_freed(void) {
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_TOP_PAD, GROWTH_BYTES);
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

/**
 * A hash for tables of names (FNV-1a: Fowler, Noll, Vo). No protection against names that are
 * chosen to collide. Threads: pure.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/slice.h"

#define HASH_START 0xcbf29ce484222325u

/** The hash of what `hash` stands for, followed by `bytes`. */
static inline uint64_t hash_more(uint64_t hash, struct slice bytes) {
    for (size_t i = 0; i < bytes.size; i++) hash = (hash ^ bytes.data[i]) * 0x100000001b3u;
    return hash;
}

#endif

/**
 * A hash for tables whose keys strangers choose: names, digests that nobody has checked yet. It
 * depends on numbers that each process draws for itself, so nobody can choose keys that collide. It
 * multiplies to 128 bits and folds them, as wyhash does (Wang Yi, 2019).
 *
 * Lifetime: the numbers are drawn at the first call and stay. Threads: any.
 */
#ifndef BASE_KEYED_HASH_H
#define BASE_KEYED_HASH_H

#include "base/slice.h"

/** The hash of what `hash` stands for, at first 0, followed by `bytes` and their count. */
uint64_t keyed_hash(uint64_t hash, struct slice bytes);

#endif

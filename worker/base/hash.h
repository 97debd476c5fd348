/**
 * A hash for tables of names that strangers choose: SipHash-2-4 (Aumasson, Bernstein: "SipHash: a
 * fast short-input PRF", 2012) under a key that each process draws at its start, so that nobody can
 * choose names that collide and make every look-up a walk. It differs from process to process:
 * nothing that is kept or sent may hold one.
 *
 * Threads: any.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/slice.h"

#define HASH_START 0u

/** The hash of what `hash` stands for, followed by `bytes`. */
uint64_t hash_more(uint64_t hash, struct slice bytes);

/** The function itself, under any key. */
uint64_t hash_with_key(const uint64_t key[static 2], struct slice bytes);

#endif

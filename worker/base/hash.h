/**
 * A hash for tables of names that senders choose: SipHash-2-4 (Aumasson, Bernstein: "SipHash: a
 * fast short-input PRF", 2012) with a key that each process draws at its start. So no sender can
 * choose names that collide and make every look-up slow. Hashes differ from process to process, so
 * they must not be stored or sent.
 *
 * Threads: any.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/slice.h"

#define HASH_START 0u

/** The hash of what `hash` covers, followed by `bytes`. */
uint64_t hash_more(uint64_t hash, struct slice bytes);

/** The function itself, with any key. */
uint64_t hash_with_key(const uint64_t key[static 2], struct slice bytes);

#endif

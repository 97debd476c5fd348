/**
 * Checks the structure of msgpack bytes before anything is allocated for them.
 *
 * A msgpack header can claim 2^32 elements in five bytes, and msgpack-c allocates what is claimed.
 * So every message passes wire_check() first: each claimed count and length must be covered by the
 * bytes that are left (every element takes at least one byte; a map's pair two), nesting is
 * limited, and ext types and the never-used byte 0xc1 are refused.
 *
 * Source of the format: the msgpack specification, github.com/msgpack/msgpack/blob/master/spec.md.
 * Units: bytes. Threads: pure functions. Memory: none, however deep the nesting.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include "base/error.h"
#include "base/slice.h"

enum { WIRE_DEPTH_MAX = 16 };

enum wire_state {
    WIRE_COMPLETE, /* the bytes start with one whole value */
    WIRE_CUT,      /* they could, if more bytes followed */
    WIRE_BROKEN    /* they never will */
};

/**
 * Looks at the value that `bytes` start with. COMPLETE: `*size` is its length. CUT and BROKEN:
 * `err` (ERR_BAD_MESSAGE) says what is wrong at which byte. For streams of values, where CUT asks
 * for more.
 */
MUST_CHECK enum wire_state wire_scan(struct slice bytes, size_t *size, struct error *err);

/**
 * ERR_OK if `bytes` are exactly one whole value, otherwise ERR_BAD_MESSAGE. `*values` counts that
 * value and all values nested in it, a map's keys too, so the caller knows what a decoded tree will
 * need.
 */
MUST_CHECK enum err wire_check(struct slice bytes, size_t *values, struct error *err);

/**
 * Reads checked bytes without decoding them: moves `bytes` past the head of the map that they start
 * with, or past a whole string. False, and nothing is moved, if they start with something else.
 */
MUST_CHECK bool wire_take_map_head(struct slice *bytes, size_t *pairs);
MUST_CHECK bool wire_take_text(struct slice *bytes, struct slice *text);

#endif

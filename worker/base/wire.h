/**
 * Msgpack bytes from outside: checked, and read into values.
 *
 * A msgpack header can claim 2^32 elements in five bytes. Here each claimed count and length must
 * be covered by the bytes that are left (every element takes at least one byte; a map's pair two),
 * nesting is limited, and ext types and the never-used byte 0xc1 are refused. Memory is taken for
 * values that are there, never for what a header claims, and up to a limit.
 *
 * Values stand one after the other in one array, in the order of the bytes, and what is nested in a
 * value is passed over in one step. Messages of up to WIRE_VALUES_AT_HAND values are checked and
 * read in one pass and take no memory; larger ones are counted first. msgpack-c, which needs the
 * check before it and builds a tree, took twice the instructions (tests/bench/RESULTS.md).
 *
 * Source of the format: the msgpack specification, github.com/msgpack/msgpack/blob/master/spec.md.
 * Units: bytes. Lifetime: values point into the bytes. Threads: pure functions.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include "base/error.h"
#include "base/slice.h"

enum { WIRE_DEPTH_MAX = 16, WIRE_VALUES_AT_HAND = 96 };

enum wire_state {
    WIRE_COMPLETE, /* the bytes start with one whole value */
    WIRE_CUT,      /* they could, if more bytes followed */
    WIRE_BROKEN    /* they never will */
};

/**
 * Looks at the value that `bytes` start with. COMPLETE: `*size` is its length. CUT: `*size` is more
 * than there are, and at most its length. CUT and BROKEN: `err` (ERR_BAD_MESSAGE) says what is
 * wrong at which byte. For streams of values, where CUT asks for more.
 */
MUST_CHECK enum wire_state wire_scan(struct slice bytes, size_t *size, struct error *err);

/**
 * ERR_OK if `bytes` are exactly one whole value, otherwise ERR_BAD_MESSAGE. `*values` counts that
 * value and all values nested in it, a map's keys too, so the caller knows what a decoded tree will
 * need.
 */
MUST_CHECK enum err wire_check(struct slice bytes, size_t *values, struct error *err);

enum wire_type {
    WIRE_NIL,
    WIRE_BOOL,
    WIRE_UINT, /* an integer from 0 up, whatever its format */
    WIRE_INT,  /* below 0 */
    WIRE_FLOAT,
    WIRE_TEXT,
    WIRE_BINARY,
    WIRE_ARRAY,
    WIRE_MAP
};

struct wire_value {
    enum wire_type type;
    uint32_t count; /* TEXT, BINARY: bytes; ARRAY: items; MAP: pairs */
    union {
        bool boolean;
        uint64_t uint;
        int64_t integer;
        double number;
        const uint8_t *bytes; /* TEXT, BINARY */
        size_t span;          /* ARRAY, MAP: values, itself and all that is nested in it */
    };
};

/** The root, then what is nested in it: items; or a key, its value, the next key, and so on. */
struct wire_values {
    struct wire_value *items;
    size_t count;
    struct wire_value at_hand[WIRE_VALUES_AT_HAND]; /* enough for most messages */
};

/**
 * Reads `bytes`, which must be exactly one whole value. After ERR_OK wire_values_fini() frees
 * `ret`; beyond WIRE_VALUES_AT_HAND it holds one block, of sizeof(struct wire_value) a value.
 * ERR_BAD_MESSAGE; ERR_TOO_LARGE: there are ret->count values, more than `values_max`, and `err` is
 * not set; ERR_NO_MEMORY.
 */
MUST_CHECK enum err wire_read(
    struct slice bytes, size_t values_max, struct wire_values *ret, struct error *err);

void wire_values_fini(struct wire_values *values);

/** What follows a value and all that is nested in it. */
static inline const struct wire_value *wire_next(const struct wire_value *value) {
    bool nests = value->type == WIRE_ARRAY || value->type == WIRE_MAP;
    return value + (nests ? value->span : 1);
}

/** The bytes of a TEXT or BINARY. */
static inline struct slice wire_slice(const struct wire_value *value) {
    return slice_of(value->bytes, value->count);
}

/** The bytes of a TEXT; none for another value, and for NULL. */
static inline struct slice wire_text(const struct wire_value *value) {
    bool is_text = value != NULL && value->type == WIRE_TEXT;
    return is_text ? wire_slice(value) : slice_of(NULL, 0);
}

/** The value of a key of a map; NULL if `map` is none, or does not have it. */
const struct wire_value *wire_find(const struct wire_value *map, struct slice key);

static inline const struct wire_value *wire_get(const struct wire_value *map, const char *key) {
    return wire_find(map, slice_of_text(key));
}

/**
 * Reads checked bytes without decoding them: moves `bytes` past the head of the map that they start
 * with, or past a whole string. False, and nothing is moved, if they start with something else.
 */
MUST_CHECK bool wire_take_map_head(struct slice *bytes, size_t *pairs);
MUST_CHECK bool wire_take_text(struct slice *bytes, struct slice *text);

#endif

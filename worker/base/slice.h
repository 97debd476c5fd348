/**
 * A view of bytes that another object owns. Bytes from outside are read only through slices. Units:
 * bytes. Lifetime: that of the owner. Threads: a plain value.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data;
    size_t size;
};

/** For printf's "%.*s": the slice as text, cut at 128 bytes; escape it first if it may be binary.
 */
#define SLICE_TEXT(s) (int)((s).size < 128 ? (s).size : 128), (const char *)(s).data

static inline struct slice slice_of(const void *data, size_t size) {
    return (struct slice){.data = data, .size = size};
}

static inline struct slice slice_of_text(const char *text) {
    return slice_of(text, strlen(text));
}

/* The first byte tells most slices of one size apart without a call. */
static inline bool slice_equal(struct slice a, struct slice b) {
    if (a.size != b.size) return false;
    return a.size == 0 || (a.data[0] == b.data[0] && memcmp(a.data, b.data, a.size) == 0);
}

static inline bool slice_is_text(struct slice s, const char *text) {
    return slice_equal(s, slice_of_text(text));
}

/**
 * Moves the first `size` bytes of `from` into `ret`; false, and nothing is moved, if there are
 * fewer.
 */
static inline bool slice_take(struct slice *from, size_t size, struct slice *ret) {
    if (size > from->size) return false;
    *ret = (struct slice){.data = from->data, .size = size};
    from->data += size;
    from->size -= size;
    return true;
}

/**
 * The size of the UTF-8 character that `s`, which must not be empty, starts with; 0 if it is not
 * valid (RFC 3629, section 4), or NUL.
 */
size_t slice_utf8_first(struct slice s);

/** True if the bytes are UTF-8 (RFC 3629: shortest forms, no surrogates) without NUL. */
bool slice_is_utf8(struct slice s);

#endif

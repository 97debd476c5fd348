/**
 * msgpack into a buffer of known size. The library's encoder (pack_template.h, which is made to be
 * included in this way) writes straight into the buffer, while msgpack_packer would make a call for
 * each of the hundred pieces of a result.
 *
 * write_uint64(), write_int32(), write_int64(), write_map(), write_array(), write_str(),
 * write_str_body(), write_bin() and write_bin_body() are the library's msgpack_pack_*(). What does
 * not fit is not written, and sets `is_over`. Threads: one.
 */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H

#include <msgpack.h>

#include "base/slice.h"

struct writer {
    uint8_t *next;
    size_t left;
    bool is_over;
};

static inline void writer_append(struct writer *writer, const void *bytes, size_t size) {
    if (size > writer->left) writer->is_over = true;
    if (writer->is_over || size == 0) return;
    memcpy(writer->next, bytes, size);
    writer->next += size;
    writer->left -= size;
}

/** Bytes that may stand behind their place, or in it already. */
static inline void writer_move(struct writer *writer, struct slice bytes) {
    if (bytes.size > writer->left) writer->is_over = true;
    if (writer->is_over || bytes.size == 0) return;
    if (bytes.data != writer->next) memmove(writer->next, bytes.data, bytes.size);
    writer->next += bytes.size;
    writer->left -= bytes.size;
}

#define msgpack_pack_inline_func(name) static inline void write##name
#define msgpack_pack_inline_func_cint(name) static inline void write##name
#define msgpack_pack_inline_func_fixint(name) static inline void write_fix##name
#define msgpack_pack_user struct writer *
#define msgpack_pack_append_buffer(user, buf, len) writer_append(user, buf, len)
#include <msgpack/pack_template.h>

static inline void write_slice(struct writer *writer, struct slice text) {
    write_str(writer, text.size);
    write_str_body(writer, text.data, text.size);
}

static inline void write_text(struct writer *writer, const char *text) {
    write_slice(writer, slice_of_text(text));
}

enum { WRITER_FIXSTR = 0xa0, WRITER_FIXSTR_MAX = 31 }; /* the format's "fixstr" */

/* What fits its head byte, in one piece: a result has some forty. */
static inline void write_fixstr(struct writer *writer, const char *text, size_t size) {
    if (size + 1 > writer->left) writer->is_over = true;
    if (writer->is_over) return;
    writer->next[0] = (uint8_t)(WRITER_FIXSTR | size);
    memcpy(writer->next + 1, text, size);
    writer->next += size + 1;
    writer->left -= size + 1;
}

/** A key of a map: a literal, whose size the compiler knows. */
#define write_key(writer, key)                                                                     \
    do {                                                                                           \
        _Static_assert(sizeof(key) - 1 <= WRITER_FIXSTR_MAX, "a key of up to 31 bytes");           \
        write_fixstr((writer), (key), sizeof(key) - 1);                                            \
    } while (0)

/** A key of a map, and its value. */
#define write_number(writer, key, value)                                                           \
    do {                                                                                           \
        write_key((writer), key);                                                                  \
        write_uint64((writer), (value));                                                           \
    } while (0)

#endif

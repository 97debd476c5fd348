#include "base/wire.h"

enum kind { SCALAR, TEXT, BINARY, ARRAY, MAP, EXT, UNUSED };

/* What a first byte means: the kind, and how many bytes of length (SCALAR: of payload) follow. */
struct format {
    uint8_t kind;
    uint8_t width;
};

/* 0xc0 to 0xdf; all other first bytes carry their payload or length in themselves. */
static const struct format formats[32] = {
    {SCALAR, 0}, {UNUSED, 0}, {SCALAR, 0}, {SCALAR, 0}, /* nil, never used, false, true */
    {BINARY, 1}, {BINARY, 2}, {BINARY, 4},              /* bin 8, 16, 32 */
    {EXT, 1}, {EXT, 2}, {EXT, 4},                       /* ext 8, 16, 32 */
    {SCALAR, 4}, {SCALAR, 8},                           /* float 32, 64 */
    {SCALAR, 1}, {SCALAR, 2}, {SCALAR, 4}, {SCALAR, 8}, /* uint 8 to 64 */
    {SCALAR, 1}, {SCALAR, 2}, {SCALAR, 4}, {SCALAR, 8}, /* int 8 to 64 */
    {EXT, 0}, {EXT, 0}, {EXT, 0}, {EXT, 0}, {EXT, 0},   /* fixext 1 to 16 */
    {TEXT, 1}, {TEXT, 2}, {TEXT, 4},                    /* str 8, 16, 32 */
    {ARRAY, 2}, {ARRAY, 4},                             /* array 16, 32 */
    {MAP, 2}, {MAP, 4},                                 /* map 16, 32 */
};

/* A value without what is nested in it. */
struct head {
    enum kind kind;
    size_t size;    /* of the first byte and the length field */
    uint64_t count; /* TEXT, BINARY, SCALAR: payload bytes; ARRAY: items; MAP: pairs */
};

static uint64_t read_big_endian(const uint8_t *bytes, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) value = value << 8 | bytes[i];
    return value;
}

/* The head at byte `at`; false where the bytes end inside it. */
static bool head_read(struct slice bytes, size_t at, struct head *ret) {
    if (at == bytes.size) return false;
    uint8_t first = bytes.data[at];
    if (first < 0x80 || first >= 0xe0) {
        *ret = (struct head){SCALAR, 1, 0};
    } else if (first < 0x90) {
        *ret = (struct head){MAP, 1, first & 0x0f};
    } else if (first < 0xa0) {
        *ret = (struct head){ARRAY, 1, first & 0x0f};
    } else if (first < 0xc0) {
        *ret = (struct head){TEXT, 1, first & 0x1f};
    } else {
        struct format format = formats[first - 0xc0];
        *ret = (struct head){format.kind, 1, format.width};
        if (format.kind == SCALAR) return true;
        if (bytes.size - at - 1 < format.width) return false;
        ret->size += format.width;
        ret->count = read_big_endian(bytes.data + at + 1, format.width);
    }
    return true;
}

static enum wire_state cut(struct slice bytes, size_t at, struct error *err) {
    (void)error_set(err, ERR_BAD_MESSAGE, 0, "send the whole msgpack value",
        "msgpack is cut off: the value at byte %zu needs more than the %zu bytes that are there",
        at, bytes.size);
    return WIRE_CUT;
}

static enum wire_state broken(size_t at, struct error *err, const char *what) {
    (void)error_set(err, ERR_BAD_MESSAGE, 0,
        "send a msgpack map of plain values: no ext types, at most 16 levels",
        "msgpack is not acceptable: %s at byte %zu", what, at);
    return WIRE_BROKEN;
}

/*
 * Walks the value that `bytes` start with. `open` holds the number of values that each level still
 * needs. A level that is complete is closed before the next value is read.
 */
static enum wire_state scan(struct slice bytes, size_t *size, size_t *values, struct error *err) {
    uint64_t open[WIRE_DEPTH_MAX + 1] = {1};
    size_t depth = 0, at = 0;
    *values = 0;
    for (;;) {
        while (open[depth] == 0) {
            if (depth == 0) {
                *size = at;
                return WIRE_COMPLETE;
            }
            depth--;
        }
        struct head head;
        if (!head_read(bytes, at, &head)) return cut(bytes, at, err);
        if (head.kind == UNUSED) return broken(at, err, "the byte 0xc1, which msgpack never uses");
        if (head.kind == EXT) return broken(at, err, "an ext type");
        bool nests = head.kind == ARRAY || head.kind == MAP;
        if (nests && depth == WIRE_DEPTH_MAX)
            return broken(at, err, "an array or map nested deeper than 16 levels");
        /* at most 2^33, so nothing overflows; each nested value takes at least one byte */
        uint64_t claimed = head.kind == MAP ? 2 * head.count : head.count;
        if (claimed > bytes.size - at - head.size) return cut(bytes, at, err);
        at += head.size + (nests ? 0 : (size_t)head.count);
        open[depth]--;
        (*values)++;
        if (nests) open[++depth] = claimed;
    }
}

enum wire_state wire_scan(struct slice bytes, size_t *size, struct error *err) {
    size_t values;
    return scan(bytes, size, &values, err);
}

enum err wire_check(struct slice bytes, size_t *values, struct error *err) {
    size_t size;
    if (scan(bytes, &size, values, err) != WIRE_COMPLETE) return ERR_BAD_MESSAGE;
    if (size == bytes.size) return ERR_OK;
    return error_set(err, ERR_BAD_MESSAGE, 0, "send one msgpack value in each message",
        "the msgpack value ends at byte %zu, and %zu more bytes follow", size, bytes.size - size);
}

bool wire_take_map_head(struct slice *bytes, size_t *pairs) {
    struct head head;
    struct slice taken;
    if (!head_read(*bytes, 0, &head) || head.kind != MAP) return false;
    *pairs = (size_t)head.count;
    return slice_take(bytes, head.size, &taken);
}

bool wire_take_text(struct slice *bytes, struct slice *text) {
    struct head head;
    struct slice taken;
    if (!head_read(*bytes, 0, &head) || head.kind != TEXT) return false;
    if (head.count > bytes->size - head.size) return false;
    return slice_take(bytes, head.size, &taken) && slice_take(bytes, (size_t)head.count, text);
}

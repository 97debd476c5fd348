#include "base/wire.h"

#include <stdlib.h>

/* What is refused. */
enum { EXT = WIRE_MAP + 1, UNUSED };

/* What a first byte means: the type, and how many bytes follow: of the length, where the type has
 * one, else of the payload. */
struct format {
    uint8_t type;
    uint8_t width;
};

/* 0xc0 to 0xdf; all other first bytes carry their payload or length in themselves. */
static const struct format formats[32] = {
    {WIRE_NIL, 0}, {UNUSED, 0}, {WIRE_BOOL, 0}, {WIRE_BOOL, 0}, /* nil, never used, false, true */
    {WIRE_BINARY, 1}, {WIRE_BINARY, 2}, {WIRE_BINARY, 4},       /* bin 8, 16, 32 */
    {EXT, 1}, {EXT, 2}, {EXT, 4},                               /* ext 8, 16, 32 */
    {WIRE_FLOAT, 4}, {WIRE_FLOAT, 8},                           /* float 32, 64 */
    {WIRE_UINT, 1}, {WIRE_UINT, 2}, {WIRE_UINT, 4}, {WIRE_UINT, 8}, /* uint 8 to 64 */
    {WIRE_INT, 1}, {WIRE_INT, 2}, {WIRE_INT, 4}, {WIRE_INT, 8},     /* int 8 to 64 */
    {EXT, 0}, {EXT, 0}, {EXT, 0}, {EXT, 0}, {EXT, 0},               /* fixext 1 to 16 */
    {WIRE_TEXT, 1}, {WIRE_TEXT, 2}, {WIRE_TEXT, 4},                 /* str 8, 16, 32 */
    {WIRE_ARRAY, 2}, {WIRE_ARRAY, 4},                               /* array 16, 32 */
    {WIRE_MAP, 2}, {WIRE_MAP, 4},                                   /* map 16, 32 */
};

/* A value without what is nested in it. */
struct head {
    unsigned type;
    size_t size;    /* of the first byte and the length */
    uint64_t count; /* ARRAY: items; MAP: pairs; others: bytes of payload */
};

static bool nests(unsigned type) {
    return type == WIRE_ARRAY || type == WIRE_MAP;
}

static uint64_t read_big_endian(const uint8_t *bytes, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) value = value << 8 | bytes[i];
    return value;
}

/* The head at byte `at`; false where the bytes end inside it. */
static inline bool head_read(struct slice bytes, size_t at, struct head *ret) {
    if (at == bytes.size) return false;
    uint8_t first = bytes.data[at];
    if (first >= 0xa0 && first < 0xc0) { /* most values are names */
        *ret = (struct head){WIRE_TEXT, 1, first & 0x1f};
    } else if (first < 0x80) {
        *ret = (struct head){WIRE_UINT, 1, 0};
    } else if (first < 0x90) {
        *ret = (struct head){WIRE_MAP, 1, first & 0x0f};
    } else if (first < 0xa0) {
        *ret = (struct head){WIRE_ARRAY, 1, first & 0x0f};
    } else if (first >= 0xe0) {
        *ret = (struct head){WIRE_INT, 1, 0};
    } else {
        struct format format = formats[first - 0xc0];
        *ret = (struct head){format.type, 1, format.width};
        if (format.type < WIRE_TEXT) return true;
        if (bytes.size - at - 1 < format.width) return false;
        ret->size += format.width;
        ret->count = read_big_endian(bytes.data + at + 1, format.width);
    }
    return true;
}

static int64_t read_int(const uint8_t *first, size_t width) {
    if (width == 0) return (int8_t)*first;
    unsigned unused_bits = 64 - 8 * (unsigned)width;
    return (int64_t)(read_big_endian(first + 1, width) << unused_bits) >> unused_bits;
}

static double read_float(const uint8_t *first, size_t width) {
    uint64_t bits = read_big_endian(first + 1, width);
    uint32_t narrow_bits = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &narrow_bits, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return width == sizeof narrow ? (double)narrow : wide;
}

/* The whole of the value that `first` is the first byte of; an array or map has no span yet. */
static inline struct wire_value value_of(const uint8_t *first, const struct head *head) {
    struct wire_value value = {.type = (enum wire_type)head->type};
    size_t width = (size_t)head->count;
    if (value.type >= WIRE_TEXT) { /* most are, and the switch below costs more */
        value.count = (uint32_t)head->count;
        value.bytes = first + head->size;
        return value;
    }
    switch (value.type) {
    case WIRE_BOOL: value.boolean = (*first & 1) != 0; break;
    case WIRE_UINT: value.uint = width == 0 ? *first : read_big_endian(first + 1, width); break;
    case WIRE_INT:
        value.integer = read_int(first, width);
        if (value.integer >= 0) value.type = WIRE_UINT;
        break;
    case WIRE_FLOAT: value.number = read_float(first, width); break;
    default: break; /* nil */
    }
    return value;
}

/* `at`: of the value that needs `least` bytes of the message or more. */
static enum wire_state cut(
    struct slice bytes, size_t at, size_t least, size_t *size, struct error *err) {
    *size = least;
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
 * Walks the value that `bytes` start with, and counts it and all values nested in it. Keeps the
 * first `room` of them in `items`. `open` holds the number of values that each level still needs. A
 * level that is complete is closed before the next value is read.
 */
__attribute__((always_inline)) static inline enum wire_state walk(struct slice bytes,
    struct wire_value *items, size_t room, size_t *size, size_t *count, struct error *err) {
    uint64_t open[WIRE_DEPTH_MAX + 1];    /* as many as are open are set */
    size_t opened_by[WIRE_DEPTH_MAX + 1]; /* index of the array or map, per level */
    size_t depth = 0, at = 0, n = 0;
    open[0] = 1;
    for (;;) {
        while (open[depth] == 0) {
            if (depth == 0) {
                *size = at;
                *count = n;
                return WIRE_COMPLETE;
            }
            if (opened_by[depth] < room) items[opened_by[depth]].span = n - opened_by[depth];
            depth--;
        }
        struct head head;
        if (!head_read(bytes, at, &head)) return cut(bytes, at, bytes.size + 1, size, err);
        if (head.type > WIRE_MAP)
            return broken(at, err,
                head.type == EXT ? "an ext type" : "the byte 0xc1, which msgpack never uses");
        if (nests(head.type) && depth == WIRE_DEPTH_MAX)
            return broken(at, err, "an array or map nested deeper than 16 levels");
        /* at most 2^33, so nothing overflows; each nested value takes at least one byte */
        uint64_t claimed = head.type == WIRE_MAP ? 2 * head.count : head.count;
        if (claimed > bytes.size - at - head.size)
            return cut(bytes, at, at + head.size + (size_t)claimed, size, err);
        if (n < room) items[n] = value_of(bytes.data + at, &head);
        at += head.size;
        open[depth]--;
        if (nests(head.type)) {
            open[++depth] = claimed;
            opened_by[depth] = n;
        } else {
            at += (size_t)head.count;
        }
        n++;
    }
}

enum wire_state wire_scan(struct slice bytes, size_t *size, struct error *err) {
    size_t count;
    return walk(bytes, NULL, 0, size, &count, err);
}

static enum err check_end(struct slice bytes, size_t size, struct error *err) {
    if (size == bytes.size) return ERR_OK;
    return error_set(err, ERR_BAD_MESSAGE, 0, "send one msgpack value in each message",
        "the msgpack value ends at byte %zu, and %zu more bytes follow", size, bytes.size - size);
}

enum err wire_check(struct slice bytes, size_t *values, struct error *err) {
    size_t size = 0;
    if (walk(bytes, NULL, 0, &size, values, err) != WIRE_COMPLETE) return ERR_BAD_MESSAGE;
    return check_end(bytes, size, err);
}

enum err wire_read(
    struct slice bytes, size_t values_max, struct wire_values *ret, struct error *err) {
    size_t size = 0;
    ret->items = ret->at_hand;
    if (walk(bytes, ret->items, WIRE_VALUES_AT_HAND, &size, &ret->count, err) != WIRE_COMPLETE)
        return ERR_BAD_MESSAGE;
    enum err code = check_end(bytes, size, err);
    if (code != ERR_OK) return code;
    if (ret->count > values_max) return ERR_TOO_LARGE;
    if (ret->count <= WIRE_VALUES_AT_HAND) return ERR_OK;
    ret->items = malloc(ret->count * sizeof ret->items[0]);
    if (ret->items == NULL)
        return error_no_memory(err, "no host memory to read %zu msgpack values", ret->count);
    (void)walk(bytes, ret->items, ret->count, &size, &ret->count, err); /* as the first time */
    return ERR_OK;
}

void wire_values_fini(struct wire_values *values) {
    if (values->items != values->at_hand) free(values->items);
}

const struct wire_value *wire_find(const struct wire_value *map, struct slice key) {
    if (map == NULL || map->type != WIRE_MAP) return NULL;
    const struct wire_value *at = map + 1;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct wire_value *value = wire_next(at);
        if (at->type == WIRE_TEXT && slice_equal(wire_slice(at), key)) return value;
        at = wire_next(value);
    }
    return NULL;
}

bool wire_take_map_head(struct slice *bytes, size_t *pairs) {
    struct head head;
    struct slice taken;
    if (!head_read(*bytes, 0, &head) || head.type != WIRE_MAP) return false;
    *pairs = (size_t)head.count;
    return slice_take(bytes, head.size, &taken);
}

bool wire_take_text(struct slice *bytes, struct slice *text) {
    struct head head;
    struct slice taken;
    if (!head_read(*bytes, 0, &head) || head.type != WIRE_TEXT) return false;
    if (head.count > bytes->size - head.size) return false;
    return slice_take(bytes, head.size, &taken) && slice_take(bytes, (size_t)head.count, text);
}

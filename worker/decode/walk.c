#include "decode/walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/invariant.h"
#include "base/wire.h"

enum { PATH_SIZE = 200 };

void walk_enter_key(struct walk *walk, struct slice key) {
    INVARIANT(walk->depth < WALK_DEPTH_MAX, "a walk goes no deeper than WALK_DEPTH_MAX");
    walk->places[walk->depth++] = (struct place){.key = key};
}

void walk_enter_index(struct walk *walk, size_t index) {
    INVARIANT(walk->depth < WALK_DEPTH_MAX, "a walk goes no deeper than WALK_DEPTH_MAX");
    walk->places[walk->depth++] = (struct place){.index = index};
}

void walk_leave(struct walk *walk) {
    INVARIANT(walk->depth > 0, "a walk leaves what it entered");
    walk->depth--;
}

const char *walk_quote(struct slice text, char ret[static QUOTED_SIZE]) {
    enum { ROOM_MIN = 12 }; /* for three more bytes of a character, or an escape; "...", a quote */
    bool is_utf8 = slice_is_utf8(text);
    size_t at = 0;
    ret[at++] = '"';
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool is_inside_character = is_utf8 && (c & 0xc0) == 0x80;
        if (QUOTED_SIZE - at < ROOM_MIN && !is_inside_character) {
            at += (size_t)snprintf(ret + at, QUOTED_SIZE - at, "...");
            break;
        }
        bool is_plain = c < 0x80 ? c >= 0x20 && c != 0x7f && c != '"' && c != '\\' : is_utf8;
        at += (size_t)snprintf(ret + at, QUOTED_SIZE - at, is_plain ? "%c" : "\\x%02x", c);
    }
    snprintf(ret + at, QUOTED_SIZE - at, "\"");
    return ret;
}

static bool is_word(struct slice text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-') return false;
    }
    return text.size > 0 && text.size < 64;
}

/* "buffers.x.shape[2]" */
static const char *path(const struct walk *walk, char ret[static PATH_SIZE]) {
    char quoted[QUOTED_SIZE];
    size_t at = 0;
    snprintf(ret, PATH_SIZE, "%s", walk->root);
    for (size_t i = 0; i < walk->depth && at < PATH_SIZE; i++) {
        const struct place *place = &walk->places[i];
        char *into = ret + at;
        size_t room = PATH_SIZE - at;
        const char *dot = i == 0 ? "" : ".";
        int written;
        if (place->key.data == NULL) written = snprintf(into, room, "[%zu]", place->index);
        else if (is_word(place->key))
            written = snprintf(into, room, "%s%.*s", dot, SLICE_TEXT(place->key));
        else written = snprintf(into, room, "%s%s", dot, walk_quote(place->key, quoted));
        at += (size_t)written;
    }
    return ret;
}

enum err walk_fail(struct walk *walk, enum err code, const char *fix, const char *format, ...) {
    char where[PATH_SIZE], what[sizeof walk->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return error_set(walk->err, code, 0, fix, "%s %s", path(walk, where), what);
}

enum err walk_limit(
    struct walk *walk, uint64_t count, uint64_t max, const char *unit, const char *setting) {
    if (count <= max) return ERR_OK;
    char fix[128];
    if (setting == NULL)
        return walk_fail(walk, ERR_TOO_LARGE, "split the job",
            "has %" PRIu64 " %s; at most %" PRIu64 " are allowed", count, unit, max);
    snprintf(fix, sizeof fix, "split the job, or raise %s of the worker", setting);
    return walk_fail(walk, ERR_TOO_LARGE, fix,
        "has %" PRIu64 " %s; at most %" PRIu64 " are allowed (%s)", count, unit, max, setting);
}

/*
 * Everything that msgpack-c takes for a message comes from one block: an object per nested value,
 * and wire_check() has counted them. So unpacking takes one allocation, of at most
 * sizeof(msgpack_object) = 24 bytes per byte of the message, and never more than the ceiling.
 */
enum err walk_unpack(struct walk *walk, struct slice payload, size_t bytes_max, const char *setting,
    size_t block_bytes_max, msgpack_zone *zone, msgpack_object *root) {
    size_t values, offset = 0;
    enum err code = walk_limit(walk, payload.size, bytes_max, "bytes", setting);
    if (code == ERR_OK) code = wire_check(payload, &values, walk->err);
    if (code != ERR_OK) return code;
    code =
        walk_limit(walk, values, block_bytes_max / sizeof(msgpack_object), "msgpack values", NULL);
    if (code != ERR_OK) return code;
    if (!msgpack_zone_init(zone, values * sizeof(msgpack_object)))
        return error_set(walk->err, ERR_NO_MEMORY, 0, "give the worker more memory",
            "no host memory to unpack %zu msgpack values", values);
    if (msgpack_unpack((const char *)payload.data, payload.size, &offset, zone, root) ==
        MSGPACK_UNPACK_SUCCESS)
        return ERR_OK;
    msgpack_zone_destroy(zone);
    return error_set(walk->err, ERR_NO_MEMORY, 0, "give the worker more memory",
        "cannot unpack %zu msgpack values", values);
}

enum err walk_alloc(struct walk *walk, size_t count, size_t size, void **ret) {
    const struct arena *arena = &walk->job->arena;
    *ret = arena_alloc(&walk->job->arena, count, size);
    if (*ret != NULL) return ERR_OK;
    /* the arena rounds up, hence >= */
    if (count >= (arena->reserved_max - arena->reserved) / size)
        return walk_fail(walk, ERR_TOO_LARGE, "split the job",
            "needs more than the %zu bytes that a decoded job may take", arena->reserved_max);
    return walk_fail(walk, ERR_NO_MEMORY, "give the worker more memory",
        "cannot be decoded: no host memory for %zu x %zu bytes", count, size);
}

const char *walk_type_name(const msgpack_object *value) {
    switch (value->type) {
    case MSGPACK_OBJECT_NIL: return "nil";
    case MSGPACK_OBJECT_BOOLEAN: return "a boolean";
    case MSGPACK_OBJECT_POSITIVE_INTEGER: return "an integer";
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: return "a negative integer";
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: return "a float";
    case MSGPACK_OBJECT_STR: return "a string";
    case MSGPACK_OBJECT_BIN: return "binary";
    case MSGPACK_OBJECT_ARRAY: return "an array";
    case MSGPACK_OBJECT_MAP: return "a map";
    default: return "of an unknown type";
    }
}

enum err walk_wrong_type(struct walk *walk, const msgpack_object *value, const char *allowed) {
    char fix[128];
    snprintf(fix, sizeof fix, "send %s there", allowed);
    return walk_fail(
        walk, ERR_BAD_JOB, fix, "is %s; it must be %s", walk_type_name(value), allowed);
}

enum err walk_is_map(struct walk *walk, const msgpack_object *value) {
    if (value->type == MSGPACK_OBJECT_MAP) return ERR_OK;
    return walk_wrong_type(walk, value, "a map");
}

enum err walk_is_array(struct walk *walk, const msgpack_object *value) {
    if (value->type == MSGPACK_OBJECT_ARRAY) return ERR_OK;
    return walk_wrong_type(walk, value, "an array");
}

static enum err unknown_key(
    struct walk *walk, const msgpack_object *key, const struct field *fields, size_t count) {
    char fix[sizeof walk->err->fix], quoted[QUOTED_SIZE];
    int at = snprintf(fix, sizeof fix, "use only these keys here:");
    for (size_t i = 0; i < count && at < (int)sizeof fix; i++)
        at += snprintf(
            fix + at, sizeof fix - (size_t)at, "%s %s", i == 0 ? "" : ",", field_name(&fields[i]));
    if (key->type != MSGPACK_OBJECT_STR)
        return walk_fail(walk, ERR_BAD_JOB, fix, "has a key that is %s; keys must be strings",
            walk_type_name(key));
    return walk_fail(walk, ERR_BAD_JOB, fix, "has the unknown key %s",
        walk_quote(walk_slice(&key->via.str), quoted));
}

/* The index of the field of that name, `count` if there is none. */
static size_t field_find(const struct field *fields, size_t count, const msgpack_object *key) {
    if (key->type != MSGPACK_OBJECT_STR) return count;
    struct slice name = walk_slice(&key->via.str);
    size_t i = 0;
    while (i < count && !slice_equal(name, fields[i].key)) i++;
    return i;
}

static enum err match_keys(struct walk *walk, const msgpack_object_map *map,
    const struct field *fields, size_t count, const msgpack_object **found) {
    for (size_t i = 0; i < count; i++) found[i] = NULL;
    for (uint32_t pair = 0; pair < map->size; pair++) {
        const msgpack_object *key = &map->ptr[pair].key;
        size_t i = field_find(fields, count, key);
        if (i == count) return unknown_key(walk, key, fields, count);
        if (found[i] != NULL)
            return walk_fail(walk, ERR_BAD_JOB, "send each key once", "has the key \"%s\" twice",
                field_name(&fields[i]));
        found[i] = &map->ptr[pair].val;
    }
    return ERR_OK;
}

enum err walk_map(struct walk *walk, const msgpack_object *map, const struct field *fields,
    size_t count, void *ret, const msgpack_object **found) {
    INVARIANT(count <= FIELDS_MAX, "a map has no more fields than FIELDS_MAX");
    enum err code = walk_is_map(walk, map);
    if (code != ERR_OK) return code;
    code = match_keys(walk, &map->via.map, fields, count, found);
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        if (found[i] == NULL && field->presence == REQUIRED)
            return walk_fail(
                walk, ERR_BAD_JOB, "add the key", "lacks the key \"%s\"", field_name(field));
        if (found[i] == NULL) continue;
        walk_enter_key(walk, field->key);
        code = field->parse(walk, found[i], (char *)ret + field->offset);
        if (code != ERR_OK) return code;
        walk_leave(walk);
    }
    return ERR_OK;
}

enum err walk_one_of(struct walk *walk, const char *key_a, const msgpack_object *a,
    const char *key_b, const msgpack_object *b) {
    if ((a == NULL) != (b == NULL)) return ERR_OK;
    char fix[128];
    snprintf(fix, sizeof fix, "give either %s or %s", key_a, key_b);
    return walk_fail(walk, ERR_BAD_JOB, fix, "has %s \"%s\" %s \"%s\"; it must have one of the two",
        a == NULL ? "neither" : "both", key_a, a == NULL ? "nor" : "and", key_b);
}

enum err walk_check_text(struct walk *walk, struct slice text, size_t max) {
    if (text.size < 1 || text.size > max)
        return walk_fail(walk, ERR_BAD_JOB, "send text of that length",
            "is %zu bytes long; 1 to %zu are allowed", text.size, max);
    if (slice_is_utf8(text)) return ERR_OK;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_JOB, "send text as UTF-8 without NUL",
        "is not UTF-8 without NUL: %s", walk_quote(text, quoted));
}

enum err walk_text(struct walk *walk, const msgpack_object *value, size_t max, struct slice *ret) {
    if (value->type != MSGPACK_OBJECT_STR) return walk_wrong_type(walk, value, "a string");
    *ret = walk_slice(&value->via.str);
    return walk_check_text(walk, *ret, max);
}

enum err walk_uint(
    struct walk *walk, const msgpack_object *value, uint64_t min, uint64_t max, uint64_t *ret) {
    if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return walk_wrong_type(walk, value, "an integer from 0 up");
    *ret = value->via.u64;
    if (*ret >= min && *ret <= max) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
        "is %" PRIu64 "; %" PRIu64 " to %" PRIu64 " are allowed", *ret, min, max);
}

enum err walk_int(
    struct walk *walk, const msgpack_object *value, int64_t min, int64_t max, int64_t *ret) {
    if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 > (uint64_t)max)
        return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
            "is %" PRIu64 "; %" PRId64 " to %" PRId64 " are allowed", value->via.u64, min, max);
    if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER &&
        value->type != MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return walk_wrong_type(walk, value, "an integer");
    *ret = value->via.i64;
    if (*ret >= min) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
        "is %" PRId64 "; %" PRId64 " to %" PRId64 " are allowed", *ret, min, max);
}

/* Integers are numbers too: a sender may write 2 for 2.0. */
enum err walk_number(struct walk *walk, const msgpack_object *value, double *ret) {
    switch (value->type) {
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: *ret = value->via.f64; return ERR_OK;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: *ret = (double)value->via.u64; return ERR_OK;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: *ret = (double)value->via.i64; return ERR_OK;
    default: return walk_wrong_type(walk, value, "a number");
    }
}

enum err parse_u8(struct walk *walk, const msgpack_object *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 0, UINT8_MAX, &wide);
    *(uint8_t *)ret = (uint8_t)wide;
    return code;
}

enum err parse_u32(struct walk *walk, const msgpack_object *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 0, UINT32_MAX, &wide);
    *(uint32_t *)ret = (uint32_t)wide;
    return code;
}

enum err parse_count_u32(struct walk *walk, const msgpack_object *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 1, UINT32_MAX, &wide);
    *(uint32_t *)ret = (uint32_t)wide;
    return code;
}

enum err parse_u64(struct walk *walk, const msgpack_object *value, void *ret) {
    return walk_uint(walk, value, 0, UINT64_MAX, ret);
}

enum err parse_count_u64(struct walk *walk, const msgpack_object *value, void *ret) {
    return walk_uint(walk, value, 1, UINT64_MAX, ret);
}

enum err parse_bool(struct walk *walk, const msgpack_object *value, void *ret) {
    if (value->type != MSGPACK_OBJECT_BOOLEAN) return walk_wrong_type(walk, value, "a boolean");
    *(bool *)ret = value->via.boolean;
    return ERR_OK;
}

enum err parse_bytes(struct walk *walk, const msgpack_object *value, void *ret) {
    if (value->type != MSGPACK_OBJECT_BIN) return walk_wrong_type(walk, value, "binary");
    *(struct slice *)ret = slice_of(value->via.bin.ptr, value->via.bin.size);
    return ERR_OK;
}

enum err parse_name(struct walk *walk, const msgpack_object *value, void *ret) {
    return walk_text(walk, value, NAME_BYTES_MAX, ret);
}

enum err parse_digest(struct walk *walk, const msgpack_object *value, void *ret) {
    if (value->type != MSGPACK_OBJECT_STR) return walk_wrong_type(walk, value, "a string");
    struct slice text = walk_slice(&value->via.str);
    if (digest_parse(text, ret)) return ERR_OK;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_JOB, "send sha256: and 64 lower-case hex digits",
        "is not a SHA-256 digest: %s", walk_quote(text, quoted));
}

enum err parse_version(struct walk *walk, const msgpack_object *value, void *ret) {
    if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 == 1) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send jobs of v 1, or upgrade the worker",
        "is not 1: this worker speaks v 1");
}

enum err parse_id(struct walk *walk, const msgpack_object *value, void *ret) {
    return walk_text(walk, value, ID_BYTES_MAX, ret);
}

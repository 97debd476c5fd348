#include "decode/walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/invariant.h"

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

/* Whether it begins as JSON or other text does. A msgpack map begins with no ASCII character. */
static bool is_text(struct slice payload, bool *is_json) {
    enum { LOOKED_AT_MAX = 64 };
    size_t count = payload.size < LOOKED_AT_MAX ? payload.size : LOOKED_AT_MAX, blanks = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t c = payload.data[i];
        bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (blanks == i && is_blank) blanks++;
        if ((c < ' ' && !is_blank) || c == 0x7f) return false;
    }
    if (blanks == count || payload.data[0] > 0x7f) return false;
    *is_json = payload.data[blanks] == '{' || payload.data[blanks] == '[';
    return true;
}

enum err walk_read(struct walk *walk, struct slice payload, size_t bytes_max, const char *setting,
    size_t values_bytes_max, struct wire_values *ret) {
    size_t values_max = values_bytes_max / sizeof ret->items[0];
    enum err code = walk_limit(walk, payload.size, bytes_max, "bytes", setting);
    if (code == ERR_OK) code = wire_read(payload, values_max, ret, walk->err);
    bool is_json;
    if (code == ERR_BAD_MESSAGE && is_text(payload, &is_json))
        return error_set(walk->err, code, 0,
            "encode it as msgpack; `gpu-worker submit` does so with a job in JSON or YAML",
            "the message is %s, and not msgpack", is_json ? "JSON" : "text");
    if (code != ERR_TOO_LARGE || payload.size > bytes_max) return code;
    return walk_limit(walk, ret->count, values_max, "msgpack values", NULL);
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

const char *walk_type_name(const struct wire_value *value) {
    switch (value->type) {
    case WIRE_NIL: return "nil";
    case WIRE_BOOL: return "a boolean";
    case WIRE_UINT: return "an integer";
    case WIRE_INT: return "a negative integer";
    case WIRE_FLOAT: return "a float";
    case WIRE_TEXT: return "a string";
    case WIRE_BINARY: return "binary";
    case WIRE_ARRAY: return "an array";
    case WIRE_MAP: return "a map";
    }
    return "of an unknown type";
}

enum err walk_wrong_type(struct walk *walk, const struct wire_value *value, const char *allowed) {
    char fix[128];
    snprintf(fix, sizeof fix, "send %s there", allowed);
    return walk_fail(
        walk, ERR_BAD_JOB, fix, "is %s; it must be %s", walk_type_name(value), allowed);
}

enum err walk_is_map(struct walk *walk, const struct wire_value *value) {
    if (value->type == WIRE_MAP) return ERR_OK;
    return walk_wrong_type(walk, value, "a map");
}

enum err walk_is_array(struct walk *walk, const struct wire_value *value) {
    if (value->type == WIRE_ARRAY) return ERR_OK;
    return walk_wrong_type(walk, value, "an array");
}

static enum err unknown_key(
    struct walk *walk, const struct wire_value *key, const struct field *fields, size_t count) {
    char fix[sizeof walk->err->fix], quoted[QUOTED_SIZE];
    int at = snprintf(fix, sizeof fix, "use only these keys here:");
    for (size_t i = 0; i < count && at < (int)sizeof fix; i++)
        at += snprintf(
            fix + at, sizeof fix - (size_t)at, "%s %s", i == 0 ? "" : ",", field_name(&fields[i]));
    if (key->type != WIRE_TEXT)
        return walk_fail(walk, ERR_BAD_JOB, fix, "has a key that is %s; keys must be strings",
            walk_type_name(key));
    return walk_fail(
        walk, ERR_BAD_JOB, fix, "has the unknown key %s", walk_quote(wire_slice(key), quoted));
}

/* The index of the field of that name, `count` if there is none. Senders write keys in one order,
 * mostly that of the table, so the search begins at `first`, behind the key before. */
static size_t field_find(
    const struct field *fields, size_t count, size_t first, const struct wire_value *key) {
    if (key->type != WIRE_TEXT) return count;
    struct slice name = wire_slice(key);
    for (size_t i = first; i < count; i++)
        if (slice_equal(fields[i].key, name)) return i;
    for (size_t i = 0; i < first; i++)
        if (slice_equal(fields[i].key, name)) return i;
    return count;
}

static enum err match_keys(struct walk *walk, const struct wire_value *map,
    const struct field *fields, size_t count, const struct wire_value **found) {
    const struct wire_value *key = map + 1;
    size_t next = 0;
    for (size_t i = 0; i < count; i++) found[i] = NULL;
    for (uint32_t pair = 0; pair < map->count; pair++) {
        const struct wire_value *value = wire_next(key);
        size_t i = field_find(fields, count, next, key);
        if (i == count) return unknown_key(walk, key, fields, count);
        if (found[i] != NULL)
            return walk_fail(walk, ERR_BAD_JOB, "send each key once", "has the key \"%s\" twice",
                field_name(&fields[i]));
        found[i] = value;
        next = i + 1;
        key = wire_next(value);
    }
    return ERR_OK;
}

enum err walk_map(struct walk *walk, const struct wire_value *map, const struct field *fields,
    size_t count, void *ret, const struct wire_value **found) {
    INVARIANT(count <= FIELDS_MAX, "a map has no more fields than FIELDS_MAX");
    enum err code = walk_is_map(walk, map);
    if (code != ERR_OK) return code;
    code = match_keys(walk, map, fields, count, found);
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

enum err walk_array(struct walk *walk, const struct wire_value *array,
    const struct array_field *field, void **items, size_t *count) {
    enum err code = walk_is_array(walk, array);
    if (code == ERR_OK)
        code = walk_limit(walk, array->count, field->max, field->unit, field->setting);
    if (code == ERR_OK) code = walk_alloc(walk, array->count, field->item_size, items);
    if (code != ERR_OK) return code;
    const struct wire_value *item = array + 1;
    for (size_t i = 0; i < array->count; i++, item = wire_next(item)) {
        walk_enter_index(walk, i);
        code = field->parse(walk, item, (char *)*items + i * field->item_size);
        if (code != ERR_OK) return code;
        walk_leave(walk);
    }
    *count = array->count;
    return ERR_OK;
}

enum err walk_one_of(struct walk *walk, const char *key_a, const struct wire_value *a,
    const char *key_b, const struct wire_value *b) {
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

enum err walk_text(
    struct walk *walk, const struct wire_value *value, size_t max, struct slice *ret) {
    if (value->type != WIRE_TEXT) return walk_wrong_type(walk, value, "a string");
    *ret = wire_slice(value);
    return walk_check_text(walk, *ret, max);
}

enum err walk_uint(
    struct walk *walk, const struct wire_value *value, uint64_t min, uint64_t max, uint64_t *ret) {
    if (value->type != WIRE_UINT) return walk_wrong_type(walk, value, "an integer from 0 up");
    *ret = value->uint;
    if (*ret >= min && *ret <= max) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
        "is %" PRIu64 "; %" PRIu64 " to %" PRIu64 " are allowed", *ret, min, max);
}

enum err walk_int(
    struct walk *walk, const struct wire_value *value, int64_t min, int64_t max, int64_t *ret) {
    if (value->type == WIRE_UINT && value->uint > (uint64_t)max)
        return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
            "is %" PRIu64 "; %" PRId64 " to %" PRId64 " are allowed", value->uint, min, max);
    if (value->type != WIRE_UINT && value->type != WIRE_INT)
        return walk_wrong_type(walk, value, "an integer");
    *ret = value->integer;
    if (*ret >= min) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send an integer in that range",
        "is %" PRId64 "; %" PRId64 " to %" PRId64 " are allowed", *ret, min, max);
}

/* Integers are numbers too: a sender may write 2 for 2.0. */
enum err walk_number(struct walk *walk, const struct wire_value *value, double *ret) {
    switch (value->type) {
    case WIRE_FLOAT: *ret = value->number; return ERR_OK;
    case WIRE_UINT: *ret = (double)value->uint; return ERR_OK;
    case WIRE_INT: *ret = (double)value->integer; return ERR_OK;
    default: return walk_wrong_type(walk, value, "a number");
    }
}

enum err parse_u8(struct walk *walk, const struct wire_value *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 0, UINT8_MAX, &wide);
    *(uint8_t *)ret = (uint8_t)wide;
    return code;
}

enum err parse_u32(struct walk *walk, const struct wire_value *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 0, UINT32_MAX, &wide);
    *(uint32_t *)ret = (uint32_t)wide;
    return code;
}

enum err parse_count_u32(struct walk *walk, const struct wire_value *value, void *ret) {
    uint64_t wide = 0;
    enum err code = walk_uint(walk, value, 1, UINT32_MAX, &wide);
    *(uint32_t *)ret = (uint32_t)wide;
    return code;
}

enum err parse_u64(struct walk *walk, const struct wire_value *value, void *ret) {
    return walk_uint(walk, value, 0, UINT64_MAX, ret);
}

enum err parse_count_u64(struct walk *walk, const struct wire_value *value, void *ret) {
    return walk_uint(walk, value, 1, UINT64_MAX, ret);
}

enum err parse_bool(struct walk *walk, const struct wire_value *value, void *ret) {
    if (value->type != WIRE_BOOL) return walk_wrong_type(walk, value, "a boolean");
    *(bool *)ret = value->boolean;
    return ERR_OK;
}

enum err parse_bytes(struct walk *walk, const struct wire_value *value, void *ret) {
    if (value->type != WIRE_BINARY) return walk_wrong_type(walk, value, "binary");
    *(struct slice *)ret = wire_slice(value);
    return ERR_OK;
}

enum err parse_name(struct walk *walk, const struct wire_value *value, void *ret) {
    return walk_text(walk, value, NAME_BYTES_MAX, ret);
}

enum err parse_digest(struct walk *walk, const struct wire_value *value, void *ret) {
    if (value->type != WIRE_TEXT) return walk_wrong_type(walk, value, "a string");
    struct slice text = wire_slice(value);
    if (digest_parse(text, ret)) return ERR_OK;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_JOB, "send sha256: and 64 lower-case hex digits",
        "is not a SHA-256 digest: %s", walk_quote(text, quoted));
}

enum err parse_version(struct walk *walk, const struct wire_value *value, void *ret) {
    if (value->type == WIRE_UINT && value->uint == 1) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "send jobs of v 1, or upgrade the worker",
        "is not 1: this worker speaks v 1");
}

enum err parse_id(struct walk *walk, const struct wire_value *value, void *ret) {
    return walk_text(walk, value, ID_BYTES_MAX, ret);
}

/**
 * Internal to decode/: strict reading of a message's values. A table per kind of map says which
 * keys it may have, which it must have, and how each is read; everything else is an error that says
 * where in the message it stands, what was found and what is allowed.
 *
 * Lifetime: a walk lives on the stack of who decodes. Threads: one.
 */
#ifndef DECODE_WALK_H
#define DECODE_WALK_H

#include "base/wire.h"
#include "decode/limits.h"
#include "job/job.h"

enum {
    WALK_DEPTH_MAX = 8, /* the deepest place: steps, [i], args, [j], words, [k] */
    FIELDS_MAX = 16,    /* of one kind of map */
    NAME_BYTES_MAX = 128,
    ID_BYTES_MAX = 256,
    TOPIC_BYTES_MAX = 249, /* Kafka's own limit */
    QUOTED_SIZE = 96
};

/** One level of the path to a value: a key, or where `key.data` is NULL an index. */
struct place {
    struct slice key;
    size_t index;
};

struct walk {
    const char *root; /* what the whole of it is called: "the job" */
    struct job *job;
    const struct decode_limits *limits;
    struct error *err;
    size_t depth;
    struct place places[WALK_DEPTH_MAX];
};

/** Reads `value` into `ret`, whose type the field's table entry knows. */
typedef enum err parse_function(struct walk *walk, const struct wire_value *value, void *ret);

enum presence { OPTIONAL, REQUIRED };

struct field {
    struct slice key; /* followed by a NUL */
    enum presence presence;
    parse_function *parse;
    size_t offset; /* of what `parse` fills, inside the map's struct */
};

static inline const char *field_name(const struct field *field) {
    return (const char *)field->key.data;
}

#define KEY(text)                                                                                  \
    { (const uint8_t *)(text), sizeof(text) - 1 }
#define FIELDS(table) (table), sizeof(table) / sizeof *(table)

/* Where we are: every enter has its leave, except on the way out with an error. */
void walk_enter_key(struct walk *walk, struct slice key);
void walk_enter_index(struct walk *walk, size_t index);
void walk_leave(struct walk *walk);

/** An error about the value at the current place: `format` goes on from "steps[0].grid ". */
__attribute__((format(printf, 4, 5))) enum err walk_fail(
    struct walk *walk, enum err code, const char *fix, const char *format, ...);

/** ERR_TOO_LARGE where `count` exceeds `max`; `setting` is the limit's path in the configuration,
 * NULL where none raises it. */
MUST_CHECK enum err walk_limit(
    struct walk *walk, uint64_t count, uint64_t max, const char *unit, const char *setting);

/**
 * Reads a message of at most `bytes_max` bytes (ERR_TOO_LARGE; `setting` as in walk_limit()) into
 * values that take at most `values_bytes_max`. After ERR_OK the caller calls wire_values_fini().
 */
MUST_CHECK enum err walk_read(struct walk *walk, struct slice payload, size_t bytes_max,
    const char *setting, size_t values_bytes_max, struct wire_values *ret);

/** Zeroed items in the job's arena. */
MUST_CHECK enum err walk_alloc(struct walk *walk, size_t count, size_t size, void **ret);

/**
 * Reads a map by its table: keys are matched first, then read in the *table's* order, so that a
 * later field may lean on an earlier one. `found[i]` is the value of field i, NULL if absent.
 */
MUST_CHECK enum err walk_map(struct walk *walk, const struct wire_value *map,
    const struct field *fields, size_t count, void *ret, const struct wire_value **found);

/** What an array may be, and what its items are read by. */
struct array_field {
    uint64_t max;               /* items, named by `unit` */
    const char *unit, *setting; /* as in walk_limit() */
    size_t item_size;
    parse_function *parse;
};

/** Reads an array into zeroed items in the job's arena. */
MUST_CHECK enum err walk_array(struct walk *walk, const struct wire_value *array,
    const struct array_field *field, void **items, size_t *count);

MUST_CHECK enum err walk_is_map(struct walk *walk, const struct wire_value *value);
MUST_CHECK enum err walk_is_array(struct walk *walk, const struct wire_value *value);

/** Exactly one of the two keys must be there; `a` and `b` are their values. */
MUST_CHECK enum err walk_one_of(struct walk *walk, const char *key_a, const struct wire_value *a,
    const char *key_b, const struct wire_value *b);

/** A string of 1 to `max` bytes of UTF-8 without NUL; walk_check_text() takes the type as given. */
MUST_CHECK enum err walk_check_text(struct walk *walk, struct slice text, size_t max);
MUST_CHECK enum err walk_text(
    struct walk *walk, const struct wire_value *value, size_t max, struct slice *ret);
MUST_CHECK enum err walk_uint(
    struct walk *walk, const struct wire_value *value, uint64_t min, uint64_t max, uint64_t *ret);
MUST_CHECK enum err walk_int(
    struct walk *walk, const struct wire_value *value, int64_t min, int64_t max, int64_t *ret);
MUST_CHECK enum err walk_number(struct walk *walk, const struct wire_value *value, double *ret);

/** The value is of another type than `allowed` says. */
enum err walk_wrong_type(struct walk *walk, const struct wire_value *value, const char *allowed);

/** What a value is, with its article: "a string". */
const char *walk_type_name(const struct wire_value *value);

/** A sender's text inside a sentence: in quotes, on one line, cut where it is long. */
const char *walk_quote(struct slice text, char ret[static QUOTED_SIZE]);

/* Fields of plain types; the comment says the type that the offset must lead to. */
parse_function parse_u8;        /* uint8_t */
parse_function parse_u32;       /* uint32_t */
parse_function parse_u64;       /* uint64_t */
parse_function parse_count_u32; /* uint32_t, at least 1 */
parse_function parse_count_u64; /* uint64_t, at least 1 */
parse_function parse_bool;      /* bool */
parse_function parse_bytes;     /* struct slice, from bin */
parse_function parse_name;      /* struct slice */
parse_function parse_digest;    /* struct digest */
parse_function parse_id;        /* struct slice */
parse_function parse_version;   /* nothing: it must be 1 */

/** True where `text` is UTF-8 of 1 to `max` bytes. */
static inline bool text_is_valid(struct slice text, size_t max) {
    return text.size >= 1 && text.size <= max && slice_is_utf8(text);
}

#endif

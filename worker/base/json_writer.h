/**
 * JSON onto a stream: commas, nesting and escapes are the writer's business.
 *
 * Every value has a `key`: its name in an object, NULL in an array and for the outermost value.
 * Texts cannot steer a terminal or break a line: what text_hazard() finds becomes a number
 * (\u001b).
 *
 * Lifetime: a writer is a plain value, `{.out = stream}`; the stream outlives it. Threads: one.
 * Errors: the stream's (ferror()); more levels than JSON_DEPTH_MAX end the process.
 */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/slice.h"

enum { JSON_DEPTH_MAX = 24 };

struct json_writer {
    FILE *out;
    bool is_spaced; /* a blank after each comma and colon */

    /* private */
    bool needs_comma, needs_line;
    int indent; /* of the line that the next value begins */
    int depth;
    char ends[JSON_DEPTH_MAX];
};

/** Each needs its json_end(). */
void json_object(struct json_writer *json, const char *key);
void json_array(struct json_writer *json, const char *key);
void json_end(struct json_writer *json);

/** Ends all that has begun; the second one also ends the line. */
void json_end_all(struct json_writer *json);
void json_end_line(struct json_writer *json);

/** A text of this program or its configuration, in the form that YAML reads as well: it takes some
 * characters beyond ASCII for line breaks and refuses others, so those of the first plane are
 * numbers. A byte of no character becomes '?'. */
void json_text(struct json_writer *json, const char *key, const char *text);

/** What came in a message: a string with its characters as they are, or json_hex() of what is not
 * UTF-8 without NUL. */
void json_bytes(struct json_writer *json, const char *key, struct slice bytes);

/** {"hex": "00ff"} */
void json_hex(struct json_writer *json, const char *key, struct slice bytes);

void json_uint(struct json_writer *json, const char *key, uint64_t value);
void json_int(struct json_writer *json, const char *key, int64_t value);
void json_bool(struct json_writer *json, const char *key, bool value);
void json_null(struct json_writer *json, const char *key);

/** In so many significant digits; null for what JSON has no number for. */
void json_double(struct json_writer *json, const char *key, int digits, double value);

/** Prepares for a value that the caller writes on the stream, which is returned. */
FILE *json_value(struct json_writer *json, const char *key);

/** The key, if it came in a message and is UTF-8. The value is written next, with NULL for a key.
 */
void json_key(struct json_writer *json, struct slice key);

/** The next value, or the next end, begins a line. */
void json_line(struct json_writer *json, int indent);

/** The inside of a string, as json_text() writes it. */
void json_escape(struct slice text, FILE *out);

#endif

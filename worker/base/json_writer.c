#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>

#include "base/invariant.h"
#include "base/text.h"

/* ---- strings ---- */

/* Of a character of up to three bytes, which JSON's \u can say. */
static unsigned number_of(const uint8_t *c, size_t size) {
    if (size == 1) return c[0];
    if (size == 2) return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    return (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

static bool is_number(struct slice c, bool is_for_yaml) {
    unsigned number;
    return (is_for_yaml && (c.size == 2 || c.size == 3)) || text_hazard(c, &number) > 0;
}

static void write_character(struct slice c, bool is_for_yaml, FILE *out) {
    if (is_number(c, is_for_yaml)) {
        fprintf(out, "\\u%04x", number_of(c.data, c.size));
        return;
    }
    if (*c.data == '"' || *c.data == '\\') putc_unlocked('\\', out);
    fwrite_unlocked(c.data, 1, c.size, out);
}

static bool is_plain(uint8_t c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* Runs of plain bytes, which nearly all texts are made of, are written in one piece. */
static void escape(struct slice text, bool is_for_yaml, FILE *out) {
    for (size_t at = 0; at < text.size;) {
        size_t start = at;
        while (at < text.size && is_plain(text.data[at])) at++;
        fwrite_unlocked(text.data + start, 1, at - start, out);
        if (at == text.size) return;
        size_t size = slice_utf8_first(slice_of(text.data + at, text.size - at));
        if (size > 0) write_character(slice_of(text.data + at, size), is_for_yaml, out);
        else putc_unlocked('?', out);
        at += size > 0 ? size : 1;
    }
}

void json_escape(struct slice text, FILE *out) {
    escape(text, true, out);
}

static void write_string(struct slice text, bool is_for_yaml, FILE *out) {
    putc_unlocked('"', out);
    escape(text, is_for_yaml, out);
    putc_unlocked('"', out);
}

/* ---- what is between values ---- */

static void begin_line(struct json_writer *json) {
    fprintf(json->out, "\n%*s", json->indent, "");
    json->needs_line = false;
}

static void separate(struct json_writer *json) {
    if (json->needs_comma) putc_unlocked(',', json->out);
    if (json->needs_line) begin_line(json);
    else if (json->needs_comma && json->is_spaced) putc_unlocked(' ', json->out);
}

static void write_key(struct json_writer *json, struct slice key, bool is_for_yaml) {
    separate(json);
    write_string(key, is_for_yaml, json->out);
    putc_unlocked(':', json->out);
    if (json->is_spaced) putc_unlocked(' ', json->out);
}

void json_key(struct json_writer *json, struct slice key) {
    write_key(json, key, false);
    json->needs_comma = false; /* the value comes next */
}

FILE *json_value(struct json_writer *json, const char *key) {
    if (key != NULL) write_key(json, slice_of_text(key), true);
    else separate(json);
    json->needs_comma = true;
    return json->out;
}

void json_line(struct json_writer *json, int indent) {
    json->needs_line = true;
    json->indent = indent;
}

static void begin(struct json_writer *json, const char *key, char start, char end) {
    INVARIANT(json->depth < JSON_DEPTH_MAX, "JSON is not nested deeper than its writer allows");
    putc_unlocked(start, json_value(json, key));
    json->ends[json->depth++] = end;
    json->needs_comma = false;
}

void json_object(struct json_writer *json, const char *key) {
    begin(json, key, '{', '}');
}

void json_array(struct json_writer *json, const char *key) {
    begin(json, key, '[', ']');
}

void json_end(struct json_writer *json) {
    INVARIANT(json->depth > 0, "what ends in JSON has begun");
    if (json->needs_line) begin_line(json);
    putc_unlocked(json->ends[--json->depth], json->out);
    json->needs_comma = true;
}

void json_end_all(struct json_writer *json) {
    while (json->depth > 0) json_end(json);
}

void json_end_line(struct json_writer *json) {
    json_end_all(json);
    putc_unlocked('\n', json->out);
}

/* ---- values ---- */

void json_text(struct json_writer *json, const char *key, const char *text) {
    write_string(slice_of_text(text), true, json_value(json, key));
}

void json_hex(struct json_writer *json, const char *key, struct slice bytes) {
    static const char digits[] = "0123456789abcdef";
    json_object(json, key);
    FILE *out = json_value(json, "hex");
    putc_unlocked('"', out);
    for (size_t i = 0; i < bytes.size; i++) {
        putc_unlocked(digits[bytes.data[i] >> 4], out);
        putc_unlocked(digits[bytes.data[i] & 15], out);
    }
    putc_unlocked('"', out);
    json_end(json);
}

void json_bytes(struct json_writer *json, const char *key, struct slice bytes) {
    if (slice_is_utf8(bytes)) write_string(bytes, false, json_value(json, key));
    else json_hex(json, key, bytes);
}

void json_uint(struct json_writer *json, const char *key, uint64_t value) {
    fprintf(json_value(json, key), "%" PRIu64, value);
}

void json_int(struct json_writer *json, const char *key, int64_t value) {
    fprintf(json_value(json, key), "%" PRId64, value);
}

void json_bool(struct json_writer *json, const char *key, bool value) {
    fputs(value ? "true" : "false", json_value(json, key));
}

void json_null(struct json_writer *json, const char *key) {
    fputs("null", json_value(json, key));
}

void json_double(struct json_writer *json, const char *key, int digits, double value) {
    if (isfinite(value)) fprintf(json_value(json, key), "%.*g", digits, value);
    else json_null(json, key);
}

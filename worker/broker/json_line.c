#include "broker/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"

struct slice json_line_of(const struct record *record) {
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL) return slice_of(NULL, 0);

    struct json_writer json = {.out = out, .is_spaced = true};
    json_object(&json, NULL);
    json_array(&json, "headers");
    for (size_t i = 0; i < record->header_count; i++) {
        json_array(&json, NULL);
        json_bytes(&json, NULL, record->headers[i].name);
        json_bytes(&json, NULL, record->headers[i].value);
        json_end(&json);
    }
    json_end(&json);
    if (record->has_key) json_bytes(&json, "key", record->key);
    else json_null(&json, "key");
    json_bytes(&json, "payload", record->payload);
    json_end_line(&json);

    bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole) return slice_of(line, size);
    free(line);
    return slice_of(NULL, 0);
}

/* --- the other way --- */

struct line {
    uint8_t *start, *at, *end;
};

static void skip_blanks(struct line *line) {
    while (line->at < line->end && strchr(" \t\r\n", *line->at) != NULL && *line->at != 0)
        line->at++;
}

/* Takes `text`, and the blanks before it. */
static bool take(struct line *line, const char *text) {
    size_t size = strlen(text);
    skip_blanks(line);
    if ((size_t)(line->end - line->at) < size || memcmp(line->at, text, size) != 0) return false;
    line->at += size;
    return true;
}

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_digits(struct line *line, size_t count, uint32_t *ret) {
    *ret = 0;
    if ((size_t)(line->end - line->at) < count) return false;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(*line->at++);
        if (digit < 0) return false;
        *ret = *ret << 4 | (uint32_t)digit;
    }
    return true;
}

static uint8_t *write_utf8(uint8_t *to, uint32_t point) {
    if (point < 0x80) {
        *to++ = (uint8_t)point;
    } else if (point < 0x800) {
        *to++ = (uint8_t)(0xc0 | point >> 6);
        *to++ = (uint8_t)(0x80 | (point & 0x3f));
    } else {
        *to++ = (uint8_t)(0xe0 | point >> 12);
        *to++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        *to++ = (uint8_t)(0x80 | (point & 0x3f));
    }
    return to;
}

/* What follows a backslash; it takes no more bytes than its escape. */
static bool take_escape(struct line *line, uint8_t **to) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (line->at == line->end) return false;
    uint8_t c = *line->at++;
    if (c == 'u') {
        uint32_t point;
        if (!take_digits(line, 4, &point) || (point >= 0xd800 && point < 0xe000)) return false;
        *to = write_utf8(*to, point);
        return true;
    }
    const char *found = c != 0 ? strchr(names, c) : NULL;
    if (found == NULL) return false;
    *(*to)++ = (uint8_t)meanings[found - names];
    return true;
}

static bool take_text(struct line *line, struct slice *ret) {
    if (!take(line, "\"")) return false;
    uint8_t *start = line->at, *to = start;
    while (line->at < line->end && *line->at != '"') {
        uint8_t c = *line->at++;
        if (c == '\\') {
            if (!take_escape(line, &to)) return false;
        } else {
            *to++ = c;
        }
    }
    *ret = slice_of(start, (size_t)(to - start));
    return take(line, "\"");
}

static bool take_hex(struct line *line, struct slice *ret) {
    if (!take(line, "{") || !take(line, "\"hex\"") || !take(line, ":") || !take(line, "\""))
        return false;
    uint8_t *start = line->at, *to = start;
    uint32_t byte;
    while (line->at < line->end && *line->at != '"') {
        if (!take_digits(line, 2, &byte)) return false;
        *to++ = (uint8_t)byte;
    }
    *ret = slice_of(start, (size_t)(to - start));
    return take(line, "\"") && take(line, "}");
}

static bool take_value(struct line *line, struct slice *ret) {
    skip_blanks(line);
    bool is_hex = line->at < line->end && *line->at == '{';
    return is_hex ? take_hex(line, ret) : take_text(line, ret);
}

static bool take_key(struct line *line, const char *key) {
    return take(line, key) && take(line, ":");
}

static bool take_headers(struct line *line, struct header *headers, size_t *count) {
    if (!take(line, "[")) return false;
    for (*count = 0; !take(line, "]"); (*count)++) {
        if (*count == DELIVERY_HEADERS_MAX || (*count > 0 && !take(line, ","))) return false;
        struct header *header = &headers[*count];
        if (!take(line, "[") || !take_value(line, &header->name) || !take(line, ",") ||
            !take_value(line, &header->value) || !take(line, "]"))
            return false;
    }
    return true;
}

static bool take_line(struct line *line, struct header *headers, struct delivery *ret) {
    if (!take(line, "{") || !take_key(line, "\"headers\"") ||
        !take_headers(line, headers, &ret->header_count) || !take(line, ",") ||
        !take_key(line, "\"key\""))
        return false;
    ret->has_key = !take(line, "null");
    if (ret->has_key && !take_value(line, &ret->key)) return false;
    if (!take(line, ",") || !take_key(line, "\"payload\"") || !take_value(line, &ret->payload) ||
        !take(line, "}"))
        return false;
    skip_blanks(line);
    return line->at == line->end;
}

enum err json_line_read(uint8_t *line, size_t size,
    struct header headers[static DELIVERY_HEADERS_MAX], struct delivery *ret, struct error *err) {
    struct line from = {.start = line, .at = line, .end = line + size};
    *ret = (struct delivery){.headers = headers};
    if (take_line(&from, headers, ret)) return ERR_OK;
    return error_set(err, ERR_BAD_MESSAGE, 0, "give it a file that run --dead-letters has written",
        "no dead letter: byte %zu of its line", (size_t)(from.at - from.start));
}

#include "broker/json_line.h"

#include <stdio.h>
#include <stdlib.h>

static void write_text(FILE *out, struct slice text) {
    putc_unlocked('"', out);
    for (size_t i = 0; i < text.size; i++) {
        int c = text.data[i];
        if (c < 0x20 || c == 0x7f) {
            fprintf(out, "\\u%04x", (unsigned)c);
            continue;
        }
        if (c == '"' || c == '\\') putc_unlocked('\\', out);
        putc_unlocked(c, out);
    }
    putc_unlocked('"', out);
}

static void write_hex(FILE *out, struct slice bytes) {
    static const char digits[] = "0123456789abcdef";
    fputs("{\"hex\": \"", out);
    for (size_t i = 0; i < bytes.size; i++) {
        putc_unlocked(digits[bytes.data[i] >> 4], out);
        putc_unlocked(digits[bytes.data[i] & 15], out);
    }
    fputs("\"}", out);
}

static void write_value(FILE *out, struct slice value) {
    if (slice_is_utf8(value)) write_text(out, value);
    else write_hex(out, value);
}

struct slice json_line_of(const struct record *record) {
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL) return slice_of(NULL, 0);

    fputs("{\"headers\": [", out);
    for (size_t i = 0; i < record->header_count; i++) {
        fputs(i == 0 ? "[" : ", [", out);
        write_value(out, record->headers[i].name);
        fputs(", ", out);
        write_value(out, record->headers[i].value);
        putc_unlocked(']', out);
    }
    fputs("], \"key\": ", out);
    if (record->has_key) write_value(out, record->key);
    else fputs("null", out);
    fputs(", \"payload\": ", out);
    write_value(out, record->payload);
    fputs("}\n", out);

    bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole) return slice_of(line, size);
    free(line);
    return slice_of(NULL, 0);
}

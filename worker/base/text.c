#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* How many bytes a character has that begins with `first`; 1 if none begins so. */
static size_t size_wanted(uint8_t first) {
    if (first < 0xc2 || first > 0xf4) return 1;
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

static bool is_cut(struct slice s) {
    if (s.size >= size_wanted(s.data[0])) return false;
    for (size_t i = 1; i < s.size; i++)
        if ((s.data[i] & 0xc0) != 0x80) return false;
    return true;
}

void text_mend(char *text) {
    struct slice left = slice_of_text(text);
    while (left.size > 0) {
        size_t size = slice_utf8_first(left);
        char *at = text + (left.data - (const uint8_t *)text);
        if (size == 0 && is_cut(left)) {
            *at = 0;
            return;
        }
        if (size == 0) *at = '?';
        left.data += size > 0 ? size : 1;
        left.size -= size > 0 ? size : 1;
    }
}

void text_mend_within(char *text, size_t size) {
    text[size - 1] = 0;
    text_mend(text);
}

void text_vformat(char *text, size_t size, const char *format, va_list args) {
    text[0] = 0; /* in case vsnprintf() fails */
    vsnprintf(text, size, format, args);
    text_mend(text);
}

void text_format(char *text, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vformat(text, size, format, args);
    va_end(args);
}

static bool is_within(unsigned number, unsigned least, unsigned most) {
    return number >= least && number <= most;
}

/* Characters of two and three bytes that matter begin with these. */
static unsigned number_of(struct slice text, size_t *size) {
    const uint8_t *b = text.data;
    *size = b[0] == 0xe2 ? 3 : b[0] == 0xc2 || b[0] == 0xd8 ? 2 : 1;
    if (*size == 1 || text.size < *size) return b[0];
    unsigned last = b[*size - 1] & 0x3fu;
    return *size == 2 ? (b[0] & 0x1fu) << 6 | last : 0x2000u | (b[1] & 0x3fu) << 6 | last;
}

size_t text_hazard(struct slice text, unsigned *ret_number) {
    size_t size;
    unsigned c = number_of(text, &size);
    *ret_number = c;
    bool is_hazard = c < 0x20 || (c < 0xa0 && size == 2) || c == 0x7f || c == 0x61c ||
                     is_within(c, 0x200e, 0x200f) || is_within(c, 0x2028, 0x202e) ||
                     is_within(c, 0x2066, 0x2069);
    return is_hazard ? size : 0;
}

void text_tame(char *text) {
    char *to = text;
    unsigned number;
    for (struct slice left = slice_of_text(text); left.size > 0;) {
        size_t size = text_hazard(left, &number);
        *to++ = size == 0 ? (char)left.data[0] : '?';
        left.data += size > 0 ? size : 1;
        left.size -= size > 0 ? size : 1;
    }
    *to = 0;
}

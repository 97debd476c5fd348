#include "base/text.h"

#include <stdio.h>

#include "base/slice.h"

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

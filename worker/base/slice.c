#include "base/slice.h"

size_t slice_utf8_first(struct slice s) {
    const uint8_t *b = s.data;
    if (b[0] == 0) return 0;
    if (b[0] < 0x80) return 1;
    size_t size = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || s.size < size) return 0;
    uint8_t low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    if (b[1] < low || b[1] > high) return 0;
    for (size_t i = 2; i < size; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    return size;
}

bool slice_is_utf8(struct slice s) {
    size_t at = 0;
    while (at < s.size) {
        bool is_ascii = s.data[at] - 1u < 0x7f; /* most of it is, and needs no call */
        size_t size = is_ascii ? 1 : slice_utf8_first(slice_of(s.data + at, s.size - at));
        if (size == 0) return false;
        at += size;
    }
    return true;
}

#include "base/number.h"

#include <string.h>

size_t number_read(const char *text, uint64_t *ret) {
    size_t digits = strspn(text, "0123456789");
    if (digits > 1 && text[0] == '0') return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (__builtin_mul_overflow(value, 10u, &value)) return 0;
        if (__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) return 0;
    }
    if (digits > 0) *ret = value;
    return digits;
}

size_t number_write(char text[static NUMBER_TEXT_MAX], int64_t value) {
    char digits[NUMBER_TEXT_MAX], *first = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--first = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) *--first = '-';
    size_t size = (size_t)(digits + sizeof digits - first);
    memcpy(text, first, size);
    return size;
}

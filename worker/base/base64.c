#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { GROUP_BYTES = 3, GROUP_DIGITS = 4, DIGIT_BITS = 6 };

static void encode_group(const uint8_t *bytes, size_t size, char text[static GROUP_DIGITS]) {
    uint32_t group = 0;
    for (size_t i = 0; i < GROUP_BYTES; i++) group = group << 8 | (i < size ? bytes[i] : 0);
    for (size_t i = 0; i < GROUP_DIGITS; i++) {
        size_t shift = (GROUP_DIGITS - 1 - i) * DIGIT_BITS;
        text[i] = i <= size ? digits[group >> shift & 63] : '=';
    }
}

size_t base64_encode(struct slice bytes, char *text) {
    size_t used = 0;
    for (size_t i = 0; i < bytes.size; i += GROUP_BYTES, used += GROUP_DIGITS) {
        size_t left = bytes.size - i;
        encode_group(bytes.data + i, left < GROUP_BYTES ? left : GROUP_BYTES, text + used);
    }
    return used;
}

/* How many bytes the group holds; 0 if it is not valid. */
static size_t decode_group(const uint8_t *text, uint8_t bytes[static GROUP_BYTES]) {
    size_t digit_count = GROUP_DIGITS;
    while (digit_count > 2 && text[digit_count - 1] == '=') digit_count--;
    uint32_t group = 0;
    for (size_t i = 0; i < digit_count; i++) {
        const char *digit = text[i] != 0 ? strchr(digits, text[i]) : NULL;
        if (digit == NULL) return 0;
        group |= (uint32_t)(digit - digits) << ((GROUP_DIGITS - 1 - i) * DIGIT_BITS);
    }
    size_t size = digit_count - 1;
    if ((group & ((1u << (GROUP_BYTES - size) * 8) - 1)) != 0) return 0;
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(group >> (GROUP_BYTES - 1 - i) * 8);
    return size;
}

bool base64_decode(struct slice text, uint8_t *bytes, size_t size_max, size_t *size) {
    if (text.size % GROUP_DIGITS != 0) return false;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i += GROUP_DIGITS) {
        uint8_t group[GROUP_BYTES];
        size_t count = decode_group(text.data + i, group);
        bool is_last = i + GROUP_DIGITS == text.size;
        if (count == 0 || (count < GROUP_BYTES && !is_last) || count > size_max - used)
            return false;
        memcpy(bytes + used, group, count);
        used += count;
    }
    *size = used;
    return true;
}

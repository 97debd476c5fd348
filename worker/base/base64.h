/** Base64 (RFC 4648, section 4: with padding). Threads: pure. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/slice.h"

/** The number of characters for `size` bytes. */
#define BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/** Writes BASE64_SIZE(bytes.size) characters, without a NUL; returns their number. */
size_t base64_encode(struct slice bytes, char *text);

/**
 * Reads all of `text` into at most `size_max` bytes at `bytes`; *size is how many. False if it is
 * not canonical base64, padding included, or holds more.
 */
bool base64_decode(struct slice text, uint8_t *bytes, size_t size_max, size_t *size);

#endif

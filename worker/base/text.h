/**
 * Makes outgoing text valid UTF-8, even if it contains foreign bytes or was cut.
 *
 * Units: bytes. Threads: pure.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/**
 * Makes `text`, which ends with NUL, UTF-8 in place: a byte that belongs to no character becomes
 * '?', and a character that is cut at the end is left out.
 */
void text_mend(char *text);

/** The same for `size` bytes that may have no NUL, since another process may have damaged them. The
 * last byte becomes NUL. `size` is not 0. */
void text_mend_within(char *text, size_t size);

/** As vsnprintf() does, cut at a character where it does not fit, and mended. `size` is not 0. */
__attribute__((format(printf, 3, 0))) void text_vformat(
    char *text, size_t size, const char *format, va_list args);

__attribute__((format(printf, 3, 4))) void text_format(
    char *text, size_t size, const char *format, ...);

#endif

/** Whole numbers in text. Threads: pure. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/**
 * Reads the decimal digits that `text` starts with and returns how many there are; 0, and *ret
 * untouched, if there are none, if the number has a leading zero (which could mean octal), or if it
 * does not fit.
 */
size_t number_read(const char *text, uint64_t *ret);

/** Of any number: its sign and digits. */
enum { NUMBER_TEXT_MAX = 20 };

/** Writes `value` in decimal, without a NUL behind it. Returns how many characters that took. */
size_t number_write(char text[static NUMBER_TEXT_MAX], int64_t value);

#endif

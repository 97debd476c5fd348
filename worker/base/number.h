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

#endif

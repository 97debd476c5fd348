/**
 * Numbers as text, in the fewest digits that lead back to the same number. Threads: pure but for
 * `out`.
 */
#ifndef DECODE_NUMBER_TEXT_H
#define DECODE_NUMBER_TEXT_H

#include <stdio.h>

#include "job/datatype.h"

/** How numbers that are not finite are written. */
struct number_words {
    const char *nan, *infinity, *minus_infinity;
};

/** `is_narrow`: it was a float of 32 bits or less. */
void number_print(FILE *out, double number, bool is_narrow, const struct number_words *words);

/** The element at `bytes`, little-endian; `type` is not DATATYPE_NONE. */
void number_print_element(
    FILE *out, enum datatype type, const uint8_t *bytes, const struct number_words *words);

/** "f32" for FP32: as job_yaml.h calls the forms of data that it has. */
const char *number_form(enum datatype type);

#endif

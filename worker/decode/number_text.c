#include "decode/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void number_print(FILE *out, double number, bool is_narrow, const struct number_words *words) {
    if (isnan(number)) {
        fputs(words->nan, out);
        return;
    }
    if (isinf(number)) {
        fputs(number < 0 ? words->minus_infinity : words->infinity, out);
        return;
    }
    char text[40];
    int digits_max = is_narrow ? 9 : 17;
    for (int digits = is_narrow ? 6 : 15; digits <= digits_max; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (is_narrow ? strtof(text, NULL) == (float)number : strtod(text, NULL) == number) break;
    }
    fputs(text, out);
}

static double half_to_double(uint16_t bits) {
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double magnitude = exponent == 0      ? ldexp(fraction, -24)
                       : exponent != 0x1f ? ldexp(fraction | 0x400, exponent - 25)
                       : fraction == 0    ? INFINITY
                                          : NAN;
    return bits & 0x8000 ? -magnitude : magnitude;
}

static float float_of_bits(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint64_t read_little_endian(const uint8_t *bytes, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--) value = value << 8 | bytes[i - 1];
    return value;
}

void number_print_element(
    FILE *out, enum datatype type, const uint8_t *bytes, const struct number_words *words) {
    uint64_t bits = read_little_endian(bytes, datatype_bytes(type));
    double wide;
    switch (type) {
    case DATATYPE_BOOL: fputs(bits != 0 ? "true" : "false", out); break;
    case DATATYPE_INT8: fprintf(out, "%d", (int8_t)bits); break;
    case DATATYPE_INT16: fprintf(out, "%d", (int16_t)bits); break;
    case DATATYPE_INT32: fprintf(out, "%" PRId32, (int32_t)bits); break;
    case DATATYPE_INT64: fprintf(out, "%" PRId64, (int64_t)bits); break;
    case DATATYPE_FP16: number_print(out, half_to_double((uint16_t)bits), true, words); break;
    case DATATYPE_BF16: number_print(out, float_of_bits((uint32_t)bits << 16), true, words); break;
    case DATATYPE_FP32: number_print(out, float_of_bits((uint32_t)bits), true, words); break;
    case DATATYPE_FP64:
        memcpy(&wide, &bits, sizeof wide);
        number_print(out, wide, false, words);
        break;
    default: fprintf(out, "%" PRIu64, bits); break;
    }
}

/* As the forms of job_yaml.h are called, where it has them. */
static const char *const form_names[] = {
    [DATATYPE_BOOL] = "bool",
    [DATATYPE_UINT8] = "u8",
    [DATATYPE_UINT16] = "u16",
    [DATATYPE_UINT32] = "u32",
    [DATATYPE_UINT64] = "u64",
    [DATATYPE_INT8] = "i8",
    [DATATYPE_INT16] = "i16",
    [DATATYPE_INT32] = "i32",
    [DATATYPE_INT64] = "i64",
    [DATATYPE_FP16] = "f16",
    [DATATYPE_BF16] = "bf16",
    [DATATYPE_FP32] = "f32",
    [DATATYPE_FP64] = "f64",
};

const char *number_form(enum datatype type) {
    return form_names[type];
}

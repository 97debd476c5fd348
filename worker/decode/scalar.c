#include "decode/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

static const char *skip_sign(const char *text) {
    return *text == '-' || *text == '+' ? text + 1 : text;
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* -?digits, 0x digits, 0o digits; the base, or 0 where `text` is no integer. */
static int integer_base(const char *text) {
    if (strncmp(text, "0x", 2) == 0)
        return text[2] != 0 && text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == 0 ? 16 : 0;
    if (strncmp(text, "0o", 2) == 0)
        return text[2] != 0 && text[2 + strspn(text + 2, "01234567")] == 0 ? 8 : 0;
    const char *number = skip_sign(text);
    return *number != 0 && number[digits(number)] == 0 ? 10 : 0;
}

static struct scalar read_integer(const char *text, int base) {
    bool is_negative = text[0] == '-';
    const char *number = base == 10 ? skip_sign(text) : text + 2;
    errno = 0;
    uint64_t magnitude = strtoull(number, NULL, base);
    if (errno != 0 || (is_negative && magnitude > (uint64_t)INT64_MAX + 1))
        return (struct scalar){.kind = SCALAR_TOO_WIDE};
    if (!is_negative || magnitude == 0)
        return (struct scalar){.kind = SCALAR_UINT, .uint = magnitude, .number = (double)magnitude};
    /* -2^63 has no positive counterpart */
    int64_t integer = -(int64_t)(magnitude - 1) - 1;
    return (struct scalar){.kind = SCALAR_INT, .integer = integer, .number = (double)integer};
}

/* [-+]?(.digits | digits[.digits])([eE][-+]?digits)? */
static bool is_float(const char *text) {
    const char *at = skip_sign(text);
    size_t whole = digits(at), fraction = 0;
    at += whole;
    if (*at == '.') {
        fraction = digits(++at);
        at += fraction;
    }
    if (whole + fraction == 0) return false;
    if (*at == 'e' || *at == 'E') {
        at = skip_sign(at + 1);
        if (digits(at) == 0) return false;
        at += digits(at);
    }
    return *at == 0;
}

struct scalar scalar_of_word(const char *text) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};

    if (is_one_of(text, nulls)) return (struct scalar){.kind = SCALAR_NULL};
    if (is_one_of(text, trues)) return (struct scalar){.kind = SCALAR_BOOL, .boolean = true};
    if (is_one_of(text, falses)) return (struct scalar){.kind = SCALAR_BOOL};
    if (is_one_of(skip_sign(text), infinities))
        return (struct scalar){
            .kind = SCALAR_FLOAT, .number = text[0] == '-' ? -INFINITY : INFINITY};
    if (is_one_of(text, nans)) return (struct scalar){.kind = SCALAR_FLOAT, .number = NAN};
    int base = integer_base(text);
    if (base != 0) return read_integer(text, base);
    if (!is_float(text)) return (struct scalar){.kind = SCALAR_TEXT};
    double number = strtod(text, NULL);
    return (struct scalar){
        .kind = isinf(number) ? SCALAR_TOO_WIDE : SCALAR_FLOAT, .number = number};
}

struct scalar scalar_of(const struct yaml_node *node) {
    if (node->is_quoted) return (struct scalar){.kind = SCALAR_TEXT};
    return scalar_of_word(node->text);
}

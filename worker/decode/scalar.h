/**
 * What an unquoted word of YAML means, by YAML 1.2's core schema: null, booleans, integers, floats;
 * all else is text. Threads: pure.
 */
#ifndef DECODE_SCALAR_H
#define DECODE_SCALAR_H

#include "base/yaml.h"

enum scalar_kind {
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_UINT, /* 0 and up */
    SCALAR_INT,  /* below 0 */
    SCALAR_FLOAT,
    SCALAR_TEXT,
    SCALAR_TOO_WIDE /* a number that 64 bits cannot hold */
};

struct scalar {
    enum scalar_kind kind;
    bool boolean;
    uint64_t uint;
    int64_t integer;
    double number; /* FLOAT, and the nearest of UINT and INT */
};

/** `node` is a YAML_SCALAR; in quotes it is always text. */
struct scalar scalar_of(const struct yaml_node *node);

/** As scalar_of(), for a word by itself. */
struct scalar scalar_of_word(const char *text);

#endif

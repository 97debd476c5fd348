/**
 * Any message as JSON on one line, whole: for programs. Binary data is {"f32": [1, 2]} where a
 * `datatype` beside it says what it is, else {"hex": "00ff"}. "NaN", "Infinity" and "-Infinity"
 * are strings. Threads: pure but for `out`.
 */
#ifndef DECODE_PRINT_JSON_H
#define DECODE_PRINT_JSON_H

#include <stdio.h>

#include "base/slice.h"

/** Without a newline. What is no msgpack is {"hex": ...}. */
void print_message_json(struct slice payload, FILE *out);

#endif

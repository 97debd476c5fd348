/**
 * Environment variables in text: "${NAME}" is the variable's value, "${NAME:-default}" the default
 * if the variable is unset or empty, and "$$" a dollar sign; any other "$" stays. Threads: any,
 * while none changes the environment.
 */
#ifndef BASE_VARIABLES_H
#define BASE_VARIABLES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/**
 * Puts the expanded text, NUL-terminated, into `arena`. Errors: ERR_CONFIG, if a reference is
 * broken or a variable without default is not set; ERR_NO_MEMORY, if the arena is full.
 */
MUST_CHECK enum err variables_expand(
    struct slice text, struct arena *arena, char **ret, struct error *err);

#endif

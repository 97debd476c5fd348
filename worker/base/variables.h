/**
 * Environment variables in text: "${NAME}" is the variable's value, "${NAME:-default}" the default
 * where the variable is unset or empty, "$$" a dollar sign; any other "$" stands for itself.
 * Threads: while nobody changes the environment.
 */
#ifndef BASE_VARIABLES_H
#define BASE_VARIABLES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/**
 * Puts the expanded text, NUL-terminated, into `arena`. ERR_CONFIG where a reference is broken or a
 * variable without default is not set, ERR_NO_MEMORY where the arena is full.
 */
MUST_CHECK enum err variables_expand(
    struct slice text, struct arena *arena, char **ret, struct error *err);

#endif

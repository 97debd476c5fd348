/**
 * Reads what an entry's manifest demands of launches, so that the kernel stays inside its buffers:
 * `at_most` and `between` of values, `at_least` of buffers, and `at_most` of `blocks` and
 * `threads`. Threads: one at a time for a manifest.
 */
#ifndef PROGRAM_BOUNDS_H
#define PROGRAM_BOUNDS_H

#include "program/fields.h"
#include "program/program.h"

/** Reads the bounds of `entry`, whose arguments must have been read; `node` is its mapping. */
void bounds_read(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *entry);

/** "rows * features + 1 <= x", as `gpu-worker programs` shows it; cut if it does not fit. */
void bound_format(const struct entry *entry, const struct bound *bound, char *ret, size_t size);

/** "1", "-2.5". */
void scalar_format(const struct scalar *scalar, char *ret, size_t size);

#endif

/**
 * Checks that an image's kernels take what the manifest says: how many parameters, of what size,
 * alignment and class. PTX and shared objects for the CPU contain this; for a cubin the driver is
 * asked when it is loaded (gpu/modules.h).
 */
#ifndef PROGRAM_PARAMS_H
#define PROGRAM_PARAMS_H

#include "program/fields.h"
#include "program/kernel_params.h"
#include "program/program.h"

/** What a launch of `entry` passes as parameter `index`. */
struct kernel_param entry_param(const struct entry *entry, size_t index);

/** The parameters of a batched kernel: the rows, and how many jobs. */
enum { BATCHED_PARAMS = 2 };
struct kernel_param batched_param(size_t index);

/**
 * Compares `image`, whose bytes are loaded, with the entries of `program`; `document` is its
 * manifest. Each difference is a problem at the argument's position in the manifest.
 */
void params_check(const struct yaml_document *document, const struct program *program,
    const struct image *image, struct problems *problems);

#endif

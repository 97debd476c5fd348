/**
 * What the kernels of a `cpu` image say of themselves (kernel_cpu.h), read from the file: nothing
 * of it is run. The file is not trusted: every offset is checked against its size.
 */
#ifndef PROGRAM_SHARED_OBJECT_H
#define PROGRAM_SHARED_OBJECT_H

#include "program/kernel_params.h"

/** False for what is no shared object of 64 bits; the driver says what is wrong with it. */
bool shared_object_is_one(struct slice image);

/** False where it has no kernel of that name, or one that is not whole. */
bool shared_object_find(struct slice image, const char *name, struct kernel_params *ret);

#endif

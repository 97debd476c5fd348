/**
 * Reads how the kernels of a `cpu` image describe themselves (kernel_cpu.h) from the file, without
 * running any of it. The file is not trusted: every offset is checked against its size. Threads:
 * any.
 */
#ifndef PROGRAM_SHARED_OBJECT_H
#define PROGRAM_SHARED_OBJECT_H

#include "program/kernel_params.h"

/** False if the image is not a 64-bit shared object; the driver will say what is wrong with it. */
bool shared_object_is_one(struct slice image);

/** Whether the file ends before what its headers name, as after a copy that was interrupted: the
 * driver would read past its end. */
bool shared_object_is_cut(struct slice image);

/** False if it has no kernel of that name, or an incomplete one. */
bool shared_object_find(struct slice image, const char *name, struct kernel_params *ret);

#endif

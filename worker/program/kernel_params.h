/** The parameters of a kernel, as its image declares them. Plain values. */
#ifndef PROGRAM_KERNEL_PARAMS_H
#define PROGRAM_KERNEL_PARAMS_H

#include "program/program.h"

enum param_class { PARAM_ANY, PARAM_WHOLE, PARAM_FLOAT };

/** 0 and PARAM_ANY: the image does not say. */
struct kernel_param {
    uint32_t bytes, alignment;
    enum param_class class;
};

struct kernel_params {
    size_t count; /* those after the first ENTRY_ARGS_MAX are only counted */
    struct kernel_param items[ENTRY_ARGS_MAX];
};

#endif

/** The parameters of a kernel as its image declares them. */
#ifndef PROGRAM_KERNEL_PARAMS_H
#define PROGRAM_KERNEL_PARAMS_H

#include "program/program.h"

enum param_class { PARAM_ANY, PARAM_WHOLE, PARAM_FLOAT };

/** As an image declares it; 0 and PARAM_ANY: it does not say. */
struct kernel_param {
    uint32_t bytes, alignment;
    enum param_class class;
};

struct kernel_params {
    size_t count; /* those after the first ENTRY_ARGS_MAX are counted alone */
    struct kernel_param items[ENTRY_ARGS_MAX];
};

#endif

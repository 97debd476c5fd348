/**
 * Reads the entries of a PTX file with their parameters: a strict reader of `.entry NAME (.param
 * ...)` that skips everything else. The file is not trusted: nothing is read past its end, and all
 * numbers are bounded. The time is linear in its size. Threads: one at a time.
 */
#ifndef PROGRAM_PTX_H
#define PROGRAM_PTX_H

#include "program/kernel_params.h"

struct ptx {
    struct slice rest;
    size_t line; /* of `rest`, from 1 */
};

enum ptx_step { PTX_ENTRY, PTX_END, PTX_UNREADABLE };

void ptx_init(struct ptx *ptx, struct slice text);

/**
 * Reads the next entry: its name, a part of the text, and its parameters. UNREADABLE: `ptx->line`
 * says where, and no more can be read.
 */
enum ptx_step ptx_next(struct ptx *ptx, struct slice *name, struct kernel_params *ret);

#endif

/**
 * Many programs that do the same: copies of `bench` under names of their own, in a temporary
 * folder, of its entry `add` and of the image for one driver alone.
 *
 * Lifetime: program_copies_make() to program_copies_remove(). Threads: one.
 */
#ifndef BENCH_PROGRAM_COPIES_H
#define BENCH_PROGRAM_COPIES_H

#include "base/temporary.h"
#include "settings/settings.h"

enum { PROGRAM_COPY_NAME_SIZE = 32 };

struct program_copies {
    char dir[TEMPORARY_PATH_SIZE]; /* as `programs.dir` takes it; "": there is none */
    size_t count;                  /* folders in it */
};

/** The name of the copy with this number. */
void program_copy_name(size_t number, char ret[static PROGRAM_COPY_NAME_SIZE]);

/** Copies what `settings` have installed. On errors, what was made is still to be removed. */
MUST_CHECK enum err program_copies_make(
    const struct settings *settings, size_t count, struct program_copies *ret, struct error *err);
void program_copies_remove(struct program_copies *copies);

#endif

/** A folder for the files of one test. */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stddef.h>

/** A new, empty folder; to be given to scratch_remove(). */
char *scratch_create(void);
void scratch_remove(char *folder); /* with all that is in it */

/** A new file in such a folder, of `size` bytes: its path, which the caller frees. */
char *scratch_file(const char *folder, const void *bytes, size_t size);

#endif

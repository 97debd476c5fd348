/** A folder for the files of one test. */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

/** A new, empty folder; to be given to scratch_remove(). */
char *scratch_create(void);
void scratch_remove(char *folder); /* with all that is in it */

#endif

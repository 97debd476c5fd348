/**
 * Short memory: the n-th allocation of a thread fails. It sees what the worker's and the test's own
 * code asks for, not what libraries do, so that a number always means the same allocation. The
 * linker puts it between the code and whatever allocates (--wrap), a sanitizer as well; a test that
 * links the target `allocation_faults` has it.
 *
 * Threads: each arms itself, and has a count of its own.
 */
#ifndef TESTS_SUPPORT_ALLOCATION_FAULTS_H
#define TESTS_SUPPORT_ALLOCATION_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/** From now on the n-th allocation of this thread fails, from 1, and no other. 0: none does. */
void allocation_faults_arm(uint64_t nth);

/** Disarms. False: there were fewer than n allocations, so that none has failed. */
bool allocation_faults_end(void);

#endif

/**
 * Faults of a disk: the n-th call on a file below a folder fails, as SQLite's tests have it. Linked
 * into a test it is told by io_faults_arm(); preloaded into a worker (LD_PRELOAD, the target
 * preload_io_faults) it reads the environment when the process starts:
 *
 *   IO_FAULTS_FOLDER  whose files fail: an absolute path without symbolic links
 *   IO_FAULTS_ERROR   ENOSPC, EIO, EACCES, CUT or SHORT
 *   IO_FAULTS_CALLS   names by commas, of IO_FAULTS_NAMES; all where it is missing
 *   IO_FAULTS_NTH     the first that fails, from 1; 1 where it is missing
 *   IO_FAULTS_ONCE    where it is set, only that one fails, else all from there on
 *   IO_FAULTS_WHILE   a file: calls are counted, and fail, only while it exists
 *
 * Threads: any; calls are counted over all of them.
 */
#ifndef TESTS_SUPPORT_IO_FAULTS_H
#define TESTS_SUPPORT_IO_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#define IO_FAULTS_NAMES(X) X(OPEN) X(READ) X(WRITE) X(SYNC) X(RENAME) X(ALLOCATE) X(MKDIR)

enum io_call {
#define X(name) IO_CALL_##name,
    IO_FAULTS_NAMES(X)
#undef X
        IO_CALL_COUNT
};

enum {
    IO_CALLS_ALL = (1 << IO_CALL_COUNT) - 1,
    /* A read that ends early, as of a file that was cut; a write of half the bytes. Other calls do
     * not fail so. */
    IO_FAULT_CUT = -1,
    /* A read or write of half the bytes, as any may be. */
    IO_FAULT_SHORT = -2
};

struct io_faults {
    const char *folder; /* as IO_FAULTS_FOLDER; valid while it is armed */
    unsigned calls;     /* 1 << enum io_call each */
    uint64_t nth;       /* from 1 */
    bool is_once;
    int error; /* an errno, IO_FAULT_CUT or IO_FAULT_SHORT */
};

/** NULL: nothing fails any more. Not while other threads use files below the folder. */
void io_faults_arm(const struct io_faults *faults);

/** Calls that could have failed since then. */
uint64_t io_faults_seen(void);

#endif

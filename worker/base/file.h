/**
 * Files that are opened without waiting and read or replaced in one step, and reads and writes that
 * are whole. Threads: any.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/problems.h"
#include "base/slice.h"

/**
 * Opens a plain file, and nothing else: whoever can put a pipe or a device in its place could make
 * open() or read() wait for ever. Descriptors that this process was given (/dev/stdin, /dev/fd/N)
 * may be anything. `flags` are those of open(); a file that it makes is the owner's alone.
 * Errors: ERR_IO with errno in `native`; 0: it is not a plain file.
 */
MUST_CHECK enum err file_open(const char *path, int flags, int *ret, struct error *err);

/**
 * Reads all of `path` ("-" is standard input; others as with file_open()) into a new block that the
 * caller frees. One NUL, not counted in *size, follows the bytes. Errors: ERR_IO with errno in
 * `native`; ERR_TOO_LARGE, if there are more than `bytes_max`.
 */
MUST_CHECK enum err file_read(
    const char *path, size_t bytes_max, char **ret, size_t *size, struct error *err);

/**
 * Reads `size` bytes, `offset` bytes from the file's start; *ret_read is less only at the end of
 * the file. False: errno says why, and *ret_read bytes came before that.
 */
MUST_CHECK bool file_read_at(int fd, uint64_t offset, void *to, size_t size, size_t *ret_read);

/** Writes all of `bytes`, `offset` bytes from the file's start. False: errno says why. */
MUST_CHECK bool file_write_at(int fd, uint64_t offset, struct slice bytes);

/**
 * Puts a file of these bytes and this mode at `path`. Readers find what was there before, or all of
 * it. False: errno says why, and nothing has changed.
 */
MUST_CHECK bool file_replace(const char *path, mode_t mode, struct slice bytes);

/** Adds what file_read() failed with as a problem of the file, whose path is printed once. */
void file_add_problem(struct problems *problems, const char *path, const struct error *err);

#endif

/**
 * Threads that read a part of a file together. From the page cache one copies about 8 GB/s, and
 * four 27 GB/s (tests/bench/RESULTS.md).
 *
 * Units: bytes. Lifetime: from file_readers_create() to file_readers_destroy(). Threads: one calls,
 * and reads as well.
 */
#ifndef BROKER_FILE_READERS_H
#define BROKER_FILE_READERS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct file_readers;

/** Errors: ERR_NO_MEMORY. */
MUST_CHECK enum err file_readers_create(struct file_readers **ret, struct error *err);

/**
 * As pread(), but less than `size` only where the file ends, or where what follows cannot be read.
 */
MUST_CHECK ssize_t file_readers_read(
    struct file_readers *readers, int fd, void *to, size_t size, uint64_t offset);

void file_readers_destroy(struct file_readers *readers); /* NULL is fine */

#endif

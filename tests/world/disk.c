/* The linker puts these in the place of the C library's functions (CMakeLists.txt). */
#include "world/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

#include "world/scheduler.h"

static uint64_t *full_until_ns; /* in the region */

void disk_begin(void) {
    full_until_ns = scheduler_alloc(sizeof *full_until_ns);
}

void disk_fill_until(uint64_t until_ns) {
    *full_until_ns = until_ns;
}

static bool is_full(void) {
    return full_until_ns != NULL && scheduler_now_ns() < *full_until_ns;
}

int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size) {
    return is_full() ? ENOSPC : __real_posix_fallocate(fd, offset, size);
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    if (!is_full()) return __real_pwrite(fd, bytes, size, offset);
    errno = ENOSPC;
    return -1;
}

/* Whoever had a state file before is dead, and some kernels let go of its locks a little later, by
 * another clock than the world's. */
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation) {
    return __real_flock(fd, operation & ~LOCK_NB);
}

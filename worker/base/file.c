#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 16 << 10 };

static enum err fail_io(struct error *err, const char *path) {
    int native = errno;
    return error_set(err, ERR_IO, native, "check that the file exists and can be read", "%s: %s",
        path, strerror(native));
}

static bool is_given(const char *path) {
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

enum err file_open(const char *path, int flags, int *ret, struct error *err) {
    struct stat file;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0) return fail_io(err, path);
    if (fstat(fd, &file) != 0) file.st_mode = 0;
    if (S_ISREG(file.st_mode) || (is_given(path) && fcntl(fd, F_SETFL, flags) == 0)) {
        *ret = fd;
        return ERR_OK;
    }
    close(fd);
    errno = EISDIR;
    if (S_ISDIR(file.st_mode)) return fail_io(err, path);
    return error_set(err, ERR_IO, 0, "name a plain file", "%s: it is not a plain file", path);
}

/* Reads to the end of the file or to `size` bytes; false on an error, with errno set. */
static bool read_up_to(int fd, char *data, size_t size, size_t *used) {
    while (*used < size) {
        ssize_t got = read(fd, data + *used, size - *used);
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return false;
        if (got > 0) *used += (size_t)got;
    }
    return true;
}

/* Grows the block until it holds the whole file, or one byte more than `bytes_max`. */
static enum err read_all(
    int fd, const char *path, size_t bytes_max, char **ret, size_t *size, struct error *err) {
    char *data = NULL;
    size_t used = 0, capacity = 0;
    enum err code = ERR_OK;
    while (used == capacity) {
        if (used > bytes_max) {
            code = error_set(err, ERR_TOO_LARGE, 0, "", "%s: more than %zu bytes", path, bytes_max);
            goto fail;
        }
        capacity = capacity == 0 ? FIRST_BYTES : 2 * capacity;
        if (capacity > bytes_max) capacity = bytes_max + 1;
        char *grown = realloc(data, capacity + 1);
        if (grown == NULL) {
            code = error_set(err, ERR_NO_MEMORY, 0, "", "%s: no memory for it", path);
            goto fail;
        }
        data = grown;
        if (!read_up_to(fd, data, capacity, &used)) {
            code = fail_io(err, path);
            goto fail;
        }
    }
    data[used] = 0;
    *ret = data;
    *size = used;
    return ERR_OK;
fail:
    free(data);
    return code;
}

enum err file_read(
    const char *path, size_t bytes_max, char **ret, size_t *size, struct error *err) {
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", bytes_max, ret, size, err);
    int fd;
    enum err code = file_open(path, O_RDONLY, &fd, err);
    if (code != ERR_OK) return code;
    code = read_all(fd, path, bytes_max, ret, size, err);
    close(fd);
    return code;
}

bool file_read_at(int fd, uint64_t offset, void *to, size_t size, size_t *ret_read) {
    *ret_read = 0;
    while (*ret_read < size) {
        ssize_t got =
            pread(fd, (uint8_t *)to + *ret_read, size - *ret_read, (off_t)(offset + *ret_read));
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return false;
        if (got > 0) *ret_read += (size_t)got;
    }
    return true;
}

bool file_write_at(int fd, uint64_t offset, struct slice bytes) {
    while (bytes.size > 0) {
        struct slice done;
        ssize_t written = pwrite(fd, bytes.data, bytes.size, (off_t)offset);
        if (written == 0) errno = ENOSPC;
        if (written == 0 || (written < 0 && errno != EINTR)) return false;
        if (written < 0) continue;
        (void)slice_take(&bytes, (size_t)written, &done);
        offset += (uint64_t)written;
    }
    return true;
}

bool file_replace(const char *path, mode_t mode, struct slice bytes) {
    char *beside;
    if (asprintf(&beside, "%s.XXXXXX", path) < 0) return false;
    int fd = mkostemp(beside, O_CLOEXEC);
    bool is_done = fd >= 0 && file_write_at(fd, 0, bytes) && fchmod(fd, mode) == 0 &&
                   rename(beside, path) == 0;
    int native = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 && !is_done) unlink(beside);
    free(beside);
    errno = native;
    return is_done;
}

void file_add_problem(struct problems *problems, const char *path, const struct error *err) {
    size_t length = strlen(path);
    const char *what = err->message;
    if (strncmp(what, path, length) == 0 && strncmp(what + length, ": ", 2) == 0)
        what += length + 2;
    problems_add(problems, path, 0, 0, err->fix, "%s", what);
}

#include "prepare/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err open_failed(int native, const char *path, const char *name, struct error *err) {
    if (native == ENOENT)
        return error_set(err, ERR_BLOB_MISSING, native, "put the payload into the blob store",
            "the blob store has no %s", name);
    return error_set(err, ERR_IO, native, "check the permissions and the state of blobs.dir",
        "cannot read %s: %s", path, strerror(native));
}

static enum err map_file(int fd, const char *path, const char *name, uint64_t bytes,
    struct blob *ret, struct error *err) {
    struct stat status;
    if (fstat(fd, &status) != 0) return open_failed(errno, path, name, err);
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != bytes)
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "%s has %" PRIu64 " bytes in the blob store, and the job says %" PRIu64, name,
            (uint64_t)status.st_size, bytes);
    void *mapping = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (mapping == MAP_FAILED) return open_failed(errno, path, name, err);
    *ret = (struct blob){.bytes = slice_of(mapping, bytes), .mapping = mapping};
    return ERR_OK;
}

enum err blob_open(const char *dir, const struct digest *digest, uint64_t bytes, struct blob *ret,
    struct error *err) {
    char name[DIGEST_TEXT_SIZE], path[PATH_MAX];
    const char *hex = digest_format(digest, name) + strlen("sha256:");
    *ret = (struct blob){0};
    if (dir[0] == 0)
        return error_set(err, ERR_BLOB_MISSING, 0, "set blobs.dir, or send the data in the message",
            "%s is not in the message, and no blob store is configured", name);
    int size = snprintf(path, sizeof path, "%s/%.2s/%s", dir, hex, hex);
    if (size < 0 || (size_t)size >= sizeof path)
        return error_set(err, ERR_IO, ENAMETOOLONG, "shorten blobs.dir", "%s is too long", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return open_failed(errno, path, name, err);
    enum err code = map_file(fd, path, name, bytes, ret, err);
    close(fd);
    if (code != ERR_OK) return code;
    struct digest found = digest_of(ret->bytes);
    if (digest_equal(&found, digest)) return ERR_OK;
    blob_fini(ret);
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "remove the file and store the payload again",
        "%s holds other bytes than its name says", path);
}

void blob_fini(struct blob *blob) {
    if (blob->mapping != NULL) munmap(blob->mapping, blob->bytes.size);
    *blob = (struct blob){0};
}

#include "blobs/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invariant.h"

enum { HEX_DIGITS = 64, SHELF_SIZE = 2 + 1 };

const char *blob_name(const struct digest *digest, char name[static BLOB_NAME_SIZE]) {
    char text[DIGEST_TEXT_SIZE];
    const char *hex = digest_format(digest, text) + strlen("sha256:");
    snprintf(name, BLOB_NAME_SIZE, "%.2s/%.64s", hex, hex);
    return name;
}

static enum err io_failed(
    const struct folder *folder, const char *what, const char *name, struct error *err) {
    int native = errno;
    return error_set(err, ERR_IO, native, "check the permissions and the state of the disk",
        "cannot %s %s/%s: %s", what, folder->path, name, strerror(native));
}

enum err folder_open(struct folder *folder, const char *path, mode_t mode, struct error *err) {
    *folder = (struct folder){.fd = -1, .path = strdup(path)};
    if (folder->path == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a path");
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0) return ERR_OK;
    int native = errno;
    folder_close(folder);
    return error_set(err, ERR_CONFIG, native, "make the folder, or name another one",
        "the blobs' folder %s cannot be used: %s", path, strerror(native));
}

void folder_close(struct folder *folder) {
    if (folder->path != NULL && folder->fd >= 0) close(folder->fd);
    free(folder->path);
    *folder = (struct folder){.fd = -1};
}

/* ---- reading ---- */

static enum err map_whole(const struct folder *folder, int fd, const char *name, uint64_t bytes,
    struct blob *ret, struct error *err) {
    struct stat status;
    if (fstat(fd, &status) != 0) return io_failed(folder, "read", name, err);
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != bytes)
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "%s/%s has %" PRIu64 " bytes, and the job says %" PRIu64, folder->path, name,
            (uint64_t)status.st_size, bytes);
    INVARIANT(bytes > 0, "a file that is mapped has bytes");
    /* Shared, so that a driver may register it (gpu/upload.h). */
    void *mapping = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (mapping == MAP_FAILED) return io_failed(folder, "map", name, err);
    *ret = (struct blob){.bytes = slice_of(mapping, bytes), .mapping = mapping};
    return ERR_OK;
}

static enum err check_digest(const struct folder *folder, const char *name,
    const struct digest *digest, struct slice bytes, struct error *err) {
    struct digest found = digest_of(bytes);
    if (digest_equal(&found, digest)) return ERR_OK;
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "remove the file and store the payload again",
        "%s/%s holds other bytes than its name says", folder->path, name);
}

enum err folder_map(const struct folder *folder, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    /* Not waiting: something else than a file, such as a pipe, must not hold the thread. */
    int fd =
        openat(folder->fd, blob_name(digest, name), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERR_BLOB_MISSING, ENOENT, "put the payload into the blob store",
            "the blob store has no sha256:%s", name + strlen("ab/"));
    if (fd < 0) return io_failed(folder, "read", name, err);
    struct blob blob = {0};
    enum err code = map_whole(folder, fd, name, bytes, &blob, err);
    if (code == ERR_OK) code = check_digest(folder, name, digest, blob.bytes, err);
    if (code == ERR_OK) {
        (void)futimens(fd, NULL); /* a store that is only read expires nothing of ours */
        *ret = blob;
    } else {
        blob_fini(&blob);
    }
    close(fd);
    return code;
}

void blob_fini(struct blob *blob) {
    if (blob->mapping != NULL) munmap(blob->mapping, blob->bytes.size);
    *blob = (struct blob){0};
}

bool folder_touch(const struct folder *folder, const struct digest *digest, uint64_t bytes) {
    char name[BLOB_NAME_SIZE];
    struct stat status;
    blob_name(digest, name);
    /* In this order: what is there after it was touched is not expired any more. */
    return utimensat(folder->fd, name, NULL, 0) == 0 &&
           fstatat(folder->fd, name, &status, 0) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size == bytes;
}

void folder_remove(const struct folder *folder, const struct digest *digest) {
    char name[BLOB_NAME_SIZE];
    (void)unlinkat(folder->fd, blob_name(digest, name), 0); /* else it is found again, as bad */
}

/* ---- writing ---- */

/* A name beside `name` that nobody else uses. */
static void make_temp_name(const char *name, char temp[static TEMP_NAME_SIZE]) {
    uint64_t random = 0;
    /* Few bytes at a time always come; if not, the exclusive open tells of a name that is taken. */
    (void)!getrandom(&random, sizeof random, 0);
    snprintf(temp, TEMP_NAME_SIZE, "%.2s/.%016" PRIx64, name, random);
}

enum err temp_file_create(const struct folder *folder, const struct digest *digest,
    struct temp_file *ret, struct error *err) {
    char name[BLOB_NAME_SIZE], shelf[SHELF_SIZE];
    struct temp_file file = {.folder = folder};
    make_temp_name(blob_name(digest, name), file.name);
    snprintf(shelf, sizeof shelf, "%.2s", name);
    bool is_new = mkdirat(folder->fd, shelf, 0777) == 0;
    if (is_new && fsync(folder->fd) != 0) return io_failed(folder, "sync", shelf, err);
    file.fd = openat(folder->fd, file.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd < 0) return io_failed(folder, "make", file.name, err);
    *ret = file;
    return ERR_OK;
}

enum err temp_file_write(const struct temp_file *file, struct slice bytes, struct error *err) {
    while (bytes.size > 0) {
        ssize_t written = write(file->fd, bytes.data, bytes.size);
        if (written < 0 && errno != EINTR) return io_failed(file->folder, "write", file->name, err);
        struct slice done;
        if (written > 0) (void)slice_take(&bytes, (size_t)written, &done);
    }
    return ERR_OK;
}

enum err temp_file_map(
    const struct temp_file *file, uint64_t bytes, struct blob *ret, struct error *err) {
    return map_whole(file->folder, file->fd, file->name, bytes, ret, err);
}

enum err temp_file_commit(
    const struct temp_file *file, const struct digest *digest, struct error *err) {
    char name[BLOB_NAME_SIZE];
    int fd = file->folder->fd;
    if (renameat(fd, file->name, fd, blob_name(digest, name)) == 0) return ERR_OK;
    return io_failed(file->folder, "rename a file to", name, err);
}

static enum err sync_shelf(
    const struct folder *folder, const struct digest *digest, struct error *err) {
    char name[BLOB_NAME_SIZE], shelf[SHELF_SIZE];
    snprintf(shelf, sizeof shelf, "%.2s", blob_name(digest, name));
    int fd = openat(folder->fd, shelf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return io_failed(folder, "open", shelf, err);
    enum err code = fsync(fd) == 0 ? ERR_OK : io_failed(folder, "sync", shelf, err);
    close(fd);
    return code;
}

enum err temp_file_commit_durably(
    const struct temp_file *file, const struct digest *digest, struct error *err) {
    if (fsync(file->fd) != 0) return io_failed(file->folder, "sync", file->name, err);
    enum err code = temp_file_commit(file, digest, err);
    return code == ERR_OK ? sync_shelf(file->folder, digest, err) : code;
}

void temp_file_close(struct temp_file *file) {
    close(file->fd);
    file->fd = -1;
}

void temp_file_discard(struct temp_file *file) {
    (void)unlinkat(file->folder->fd, file->name, 0); /* else the next sweep removes it */
    temp_file_close(file);
}

/* ---- what is there ---- */

static uint64_t mtime_unix_ns(const struct stat *status) {
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

/* False for what is neither a blob nor an unfinished file. */
static bool describe(int shelf_fd, const char *shelf, const char *name, struct folder_file *ret) {
    char text[DIGEST_TEXT_SIZE];
    struct stat status;
    size_t size = strlen(name);
    *ret = (struct folder_file){.is_temp = name[0] == '.'};
    if (size > HEX_DIGITS || fstatat(shelf_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    snprintf(ret->name, sizeof ret->name, "%s/%.64s", shelf, name);
    ret->bytes = (uint64_t)status.st_size;
    ret->used_unix_ns = mtime_unix_ns(&status);
    if (ret->is_temp) return true;
    snprintf(text, sizeof text, "sha256:%.64s", name);
    return memcmp(name, shelf, 2) == 0 && digest_parse(slice_of_text(text), &ret->digest);
}

static void visit_shelf(int shelf_fd, const char *shelf,
    void (*visit)(void *context, const struct folder_file *file), void *context) {
    DIR *files = fdopendir(shelf_fd);
    if (files == NULL) {
        close(shelf_fd);
        return;
    }
    const struct dirent *item;
    while ((item = readdir(files)) != NULL) {
        struct folder_file file;
        if (describe(shelf_fd, shelf, item->d_name, &file)) visit(context, &file);
    }
    closedir(files);
}

void folder_visit(const struct folder *folder,
    void (*visit)(void *context, const struct folder_file *file), void *context) {
    for (unsigned i = 0; i < 256; i++) {
        char shelf[SHELF_SIZE];
        snprintf(shelf, sizeof shelf, "%02x", i & 0xff);
        int fd = openat(folder->fd, shelf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) visit_shelf(fd, shelf, visit, context);
    }
}

/*
 * A blob is moved aside before the last look at its age: a writer that marks it as used either did
 * so before, and it is put back, or does not find it, and stores it again.
 */
void folder_expire(
    const struct folder *folder, const struct folder_file *file, uint64_t before_unix_ns) {
    char aside[TEMP_NAME_SIZE];
    struct stat status;
    if (file->used_unix_ns >= before_unix_ns) return;
    if (file->is_temp) {
        (void)unlinkat(folder->fd, file->name, 0);
        return;
    }
    make_temp_name(file->name, aside);
    if (renameat(folder->fd, file->name, folder->fd, aside) != 0) return;
    bool is_used = fstatat(folder->fd, aside, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                   mtime_unix_ns(&status) >= before_unix_ns;
    if (is_used) (void)renameat(folder->fd, aside, folder->fd, file->name);
    else (void)unlinkat(folder->fd, aside, 0);
}

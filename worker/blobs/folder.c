#include "blobs/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "blobs/parts.h"

enum { HEX_DIGITS = 64, NO_FD = -1 };

#define TEMP_PREFIX ".gpu-worker."

const char *blob_name(const struct digest *digest, char name[static BLOB_NAME_SIZE]) {
    char text[DIGEST_TEXT_SIZE];
    const char *hex = digest_format(digest, text) + strlen("sha256:");
    snprintf(name, BLOB_NAME_SIZE, "%.2s/%.64s", hex, hex);
    return name;
}

/* The file name within its shelf (sub-folder). */
static const char *name_on_shelf(const char *name) {
    return name + strlen("ab/");
}

static enum err io_failed(
    const struct folder *folder, const char *what, const char *name, struct error *err) {
    int native = errno;
    return error_set(err, ERR_IO, native, "check the permissions and the state of the disk",
        "%s: cannot %s %s: %s", folder->setting, what, name, strerror(native));
}

enum err folder_open(
    struct folder *folder, const char *setting, const char *path, mode_t mode, struct error *err) {
    *folder = (struct folder){.fd = NO_FD, .setting = setting};
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0) return ERR_OK;
    int native = errno;
    return error_set(err, ERR_CONFIG, native, "make the folder, or name another one",
        "%s: the folder %s cannot be used: %s", setting, path, strerror(native));
}

void folder_close(struct folder *folder) {
    if (folder->fd >= 0) close(folder->fd);
    folder->fd = NO_FD;
}

/* ---- nothing outside ---- */

/* The folder of the first two digits of `name`. */
static int open_shelf(const struct folder *folder, const char *name) {
    char shelf[SHELF_SIZE];
    snprintf(shelf, sizeof shelf, "%.2s", name);
    return openat(folder->fd, shelf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Keeps errno. */
static void close_shelf(int fd) {
    int native = errno;
    if (fd >= 0) close(fd);
    errno = native;
}

/* Opens without waiting, because something other than a file, such as a pipe, must not block the
 * thread. */
static int open_on_shelf(int shelf_fd, const char *name) {
    return openat(shelf_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* True for errors that other writers in the folder can cause; all others are errors of the disk. */
static bool is_absence(int native) {
    return native == ENOENT || native == ENOTDIR || native == ELOOP || native == ENXIO ||
           native == EACCES;
}

static enum err is_missing(const char *name, struct error *err) {
    return error_set(err, ERR_BLOB_MISSING, ENOENT, "put the payload into the blob store",
        "the blob store has no file sha256:%s that can be read", name_on_shelf(name));
}

/* ---- reading ---- */

/* Opens the blob, which must be a plain file. */
static enum err open_blob(const struct folder *folder, const char *name, int *ret_fd,
    struct stat *ret_status, struct error *err) {
    int shelf_fd = open_shelf(folder, name);
    if (shelf_fd < 0 && errno == EACCES) return io_failed(folder, "open", name, err);
    int fd = shelf_fd < 0 ? NO_FD : open_on_shelf(shelf_fd, name_on_shelf(name));
    close_shelf(shelf_fd);
    if (fd < 0)
        return is_absence(errno) ? is_missing(name, err) : io_failed(folder, "open", name, err);
    enum err code = ERR_OK;
    if (fstat(fd, ret_status) != 0) code = io_failed(folder, "read", name, err);
    else if (!S_ISREG(ret_status->st_mode)) code = is_missing(name, err);
    if (code == ERR_OK) *ret_fd = fd;
    else close(fd);
    return code;
}

/* If the file was truncated, the copy is incomplete, and copy_finish() reports it. */
static enum err fill(
    const struct folder *folder, int fd, const char *name, struct copy *copy, struct error *err) {
    size_t room;
    void *to;
    while (to = copy_room(copy, &room), room > 0) {
        ssize_t got = pread(fd, to, room, (off_t)copy->filled);
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return io_failed(folder, "read", name, err);
        if (got > 0) copy_filled(copy, (size_t)got);
    }
    return ERR_OK;
}

static enum err read_file(const struct folder *folder, int fd, const char *name,
    const struct digest *digest, uint64_t bytes, struct blob_memory *memory, struct blob *ret,
    struct error *err) {
    struct copy copy = {0};
    enum err code = copy_begin(memory, bytes, &copy, err);
    if (code == ERR_OK) code = fill(folder, fd, name, &copy, err);
    if (code == ERR_OK) code = copy_finish(&copy, digest, ret, err);
    copy_fini(&copy);
    return code;
}

/* Failures do not matter: in a store that cannot be written, nothing expires. */
static void mark_used(int fd, const struct stat *status) {
    if (status->st_nlink == 1) (void)futimens(fd, NULL);
}

/* One that has the size that it is said to have. */
static enum err open_sized(const struct folder *folder, const struct digest *digest, uint64_t bytes,
    char name[static BLOB_NAME_SIZE], int *ret_fd, struct stat *ret_status, struct error *err) {
    int fd;
    enum err code = open_blob(folder, blob_name(digest, name), &fd, ret_status, err);
    if (code != ERR_OK) return code;
    if ((uint64_t)ret_status->st_size == bytes) {
        *ret_fd = fd;
        return ERR_OK;
    }
    close(fd);
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
        "sha256:%s has %" PRIu64 " bytes in the blob store, and the job says %" PRIu64,
        name_on_shelf(name), (uint64_t)ret_status->st_size, bytes);
}

enum err folder_read(const struct folder *folder, const struct digest *digest, uint64_t bytes,
    struct blob_memory *memory, struct blob *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    struct stat status;
    int fd;
    enum err code = open_sized(folder, digest, bytes, name, &fd, &status, err);
    if (code != ERR_OK) return code;
    code = read_file(folder, fd, name, digest, bytes, memory, ret, err);
    if (code == ERR_OK) mark_used(fd, &status);
    close(fd);
    return code;
}

enum err folder_read_parts(const struct folder *folder, const struct digest *digest, uint64_t bytes,
    struct blob_memory *memory, struct blob *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    struct stat status;
    int fd;
    enum err code = open_sized(folder, digest, bytes, name, &fd, &status, err);
    if (code != ERR_OK) return code;
    code = parts_create(bytes, memory, &ret->parts, err);
    if (code == ERR_OK) code = parts_open(ret->parts, fd, digest, err);
    if (code == ERR_OK) {
        mark_used(fd, &status);
    } else {
        close(fd);
        blob_fini(ret);
    }
    return code;
}

bool folder_touch(const struct folder *folder, const struct digest *digest, uint64_t bytes) {
    char name[BLOB_NAME_SIZE];
    struct stat status, now;
    struct error ignored;
    int fd;
    if (open_blob(folder, blob_name(digest, name), &fd, &status, &ignored) != ERR_OK) return false;
    mark_used(fd, &status);
    close(fd);
    /* in this order: a file that exists after it was touched will not expire */
    int shelf_fd = open_shelf(folder, name);
    bool is_there =
        shelf_fd >= 0 && fstatat(shelf_fd, name_on_shelf(name), &now, AT_SYMLINK_NOFOLLOW) == 0;
    close_shelf(shelf_fd);
    return is_there && now.st_dev == status.st_dev && now.st_ino == status.st_ino &&
           (uint64_t)now.st_size == bytes;
}

void folder_remove(const struct folder *folder, const struct digest *digest) {
    char name[BLOB_NAME_SIZE];
    int shelf_fd = open_shelf(folder, blob_name(digest, name));
    /* otherwise it would be found again, as damaged */
    if (shelf_fd >= 0) (void)unlinkat(shelf_fd, name_on_shelf(name), 0);
    close_shelf(shelf_fd);
}

/* ---- writing ---- */

/* A name that no other file has. */
static void make_temp_name(char temp[static TEMP_NAME_SIZE]) {
    uint64_t random = 0;
    /* so few bytes never fail; if they did, the exclusive open would notice a name in use */
    (void)!getrandom(&random, sizeof random, 0);
    snprintf(temp, TEMP_NAME_SIZE, TEMP_PREFIX "%016" PRIx64, random);
}

static bool is_temp_name(const char *name) {
    size_t prefix = strlen(TEMP_PREFIX);
    return strlen(name) == TEMP_NAME_SIZE - 1 && strncmp(name, TEMP_PREFIX, prefix) == 0 &&
           strspn(name + prefix, "0123456789abcdef") == TEMP_NAME_SIZE - 1 - prefix;
}

static enum err make_shelf(
    const struct folder *folder, const char *name, int *ret_fd, struct error *err) {
    char shelf[SHELF_SIZE];
    snprintf(shelf, sizeof shelf, "%.2s", name);
    bool is_new = mkdirat(folder->fd, shelf, 0777) == 0;
    if (is_new && fsync(folder->fd) != 0) return io_failed(folder, "sync", shelf, err);
    *ret_fd = open_shelf(folder, name);
    return *ret_fd >= 0 ? ERR_OK : io_failed(folder, "open", shelf, err);
}

/* Without a name, so that it ends with the process, however that ends; with one on file systems
 * that cannot do so, such as NFS. */
static int open_temp(int shelf_fd, const char *name, bool *ret_is_named) {
    int fd = openat(shelf_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    *ret_is_named = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT);
    if (!*ret_is_named) return fd;
    return openat(shelf_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

enum err temp_file_create(const struct folder *folder, const struct digest *digest,
    struct temp_file *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    struct temp_file file = {.folder = folder, .digest = *digest, .fd = NO_FD};
    enum err code = make_shelf(folder, blob_name(digest, name), &file.shelf_fd, err);
    if (code != ERR_OK) return code;
    make_temp_name(file.name);
    file.fd = open_temp(file.shelf_fd, file.name, &file.is_named);
    if (file.fd < 0) {
        code = io_failed(folder, "make a file for", name, err);
        close(file.shelf_fd);
        return code;
    }
    *ret = file;
    return ERR_OK;
}

static enum err write_failed(const struct temp_file *file, const char *what, struct error *err) {
    char name[BLOB_NAME_SIZE];
    return io_failed(file->folder, what, blob_name(&file->digest, name), err);
}

enum err temp_file_write(struct temp_file *file, struct slice bytes, struct error *err) {
    if (!file_write_at(file->fd, file->bytes, bytes)) return write_failed(file, "write", err);
    file->bytes += bytes.size;
    return ERR_OK;
}

enum err temp_file_open_parts(
    const struct temp_file *file, struct blob_parts *parts, struct error *err) {
    int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return write_failed(file, "open", err);
    enum err code = parts_open(parts, fd, &file->digest, err);
    if (code != ERR_OK) close(fd);
    return code;
}

/* The file moves to the shelf of its digest, and stays unfinished. */
enum err temp_file_name(struct temp_file *file, const struct digest *digest, struct error *err) {
    char name[BLOB_NAME_SIZE];
    int shelf_fd;
    enum err code = make_shelf(file->folder, blob_name(digest, name), &shelf_fd, err);
    if (code != ERR_OK) return code;
    if (file->is_named && renameat(file->shelf_fd, file->name, shelf_fd, file->name) != 0) {
        code = io_failed(file->folder, "move a file to", name, err);
        close(shelf_fd);
        return code;
    }
    close(file->shelf_fd);
    file->shelf_fd = shelf_fd;
    file->digest = *digest;
    return ERR_OK;
}

/* A link cannot take the place of a file, so it gets the temporary name first. */
static bool give_temp_name(struct temp_file *file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    file->is_named = file->is_named ||
                     linkat(AT_FDCWD, path, file->shelf_fd, file->name, AT_SYMLINK_FOLLOW) == 0;
    return file->is_named;
}

enum err temp_file_commit(struct temp_file *file, struct error *err) {
    char name[BLOB_NAME_SIZE];
    const char *final = name_on_shelf(blob_name(&file->digest, name));
    if (!give_temp_name(file)) return write_failed(file, "name a file for", err);
    if (renameat(file->shelf_fd, file->name, file->shelf_fd, final) == 0) return ERR_OK;
    return write_failed(file, "rename a file to", err);
}

enum err temp_file_commit_durably(struct temp_file *file, struct error *err) {
    char name[BLOB_NAME_SIZE];
    if (fsync(file->fd) != 0) return write_failed(file, "sync", err);
    enum err code = temp_file_commit(file, err);
    if (code != ERR_OK || fsync(file->shelf_fd) == 0) return code;
    code = write_failed(file, "sync the folder of", err);
    /* otherwise the next try would find it, and take it for stored */
    (void)unlinkat(file->shelf_fd, name_on_shelf(blob_name(&file->digest, name)), 0);
    return code;
}

void temp_file_close(struct temp_file *file) {
    close(file->fd);
    close(file->shelf_fd);
    file->fd = file->shelf_fd = NO_FD;
}

void temp_file_discard(struct temp_file *file) {
    /* if this fails, the next sweep removes it */
    if (file->is_named) (void)unlinkat(file->shelf_fd, file->name, 0);
    temp_file_close(file);
}

/* ---- what is there ---- */

static uint64_t mtime_unix_ns(const struct stat *status) {
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

/* False for anything but a blob or an unfinished file of ours. */
static bool describe(int shelf_fd, const char *shelf, const char *name, struct folder_file *ret) {
    char text[DIGEST_TEXT_SIZE];
    struct stat status;
    *ret = (struct folder_file){.is_temp = is_temp_name(name)};
    if (strlen(name) > HEX_DIGITS || fstatat(shelf_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    snprintf(ret->shelf, sizeof ret->shelf, "%s", shelf);
    snprintf(ret->name, sizeof ret->name, "%.64s", name);
    ret->bytes = (uint64_t)status.st_size;
    ret->used_unix_ns = mtime_unix_ns(&status);
    ret->has_other_names = status.st_nlink > 1;
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
        int fd = open_shelf(folder, shelf);
        if (fd >= 0) visit_shelf(fd, shelf, visit, context);
    }
}

/* Renames a blob before the last check of its age: a writer that marks it as used either did so
 * before, and the blob is renamed back, or does not find it, and stores it again. */
static void expire_on_shelf(int shelf_fd, const struct folder_file *file, uint64_t before_unix_ns) {
    char aside[TEMP_NAME_SIZE];
    struct stat status;
    make_temp_name(aside);
    if (renameat(shelf_fd, file->name, shelf_fd, aside) != 0) return;
    bool is_used = fstatat(shelf_fd, aside, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                   mtime_unix_ns(&status) >= before_unix_ns;
    if (is_used) (void)renameat(shelf_fd, aside, shelf_fd, file->name);
    else (void)unlinkat(shelf_fd, aside, 0);
}

void folder_expire(
    const struct folder *folder, const struct folder_file *file, uint64_t before_unix_ns) {
    if (file->used_unix_ns >= before_unix_ns) return;
    if (!file->is_temp && file->has_other_names) return;
    int shelf_fd = open_shelf(folder, file->shelf);
    if (shelf_fd < 0) return;
    if (file->is_temp) (void)unlinkat(shelf_fd, file->name, 0);
    else expire_on_shelf(shelf_fd, file, before_unix_ns);
    close(shelf_fd);
}

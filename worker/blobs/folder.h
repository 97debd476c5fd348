/**
 * A folder of blobs: `<path>/<first two hex>/<64 hex>`. Files are written without a name, or with a
 * temporary one, `.gpu-worker.<16 hex>`, in the same folder, and then renamed, so a file with a
 * blob's name is complete. The time of a file's last use is its mtime.
 *
 * Others may write in the folder. The 256 folders below it are opened without following links, and
 * a file only relative to one of them, without following links or waiting: nothing outside is ever
 * read, written or removed. Anything but a plain file counts as missing. A file with other names
 * (hard links) is read, but neither marked as used nor expired: it may belong to someone else.
 *
 * Error messages name the folder by its setting and files by their digests, because senders may see
 * them.
 *
 * Private to blobs/. Threads: any; the file system is the only state.
 */
#ifndef BLOBS_FOLDER_H
#define BLOBS_FOLDER_H

#include <sys/types.h>

#include "blobs/copy.h"

enum {
    SHELF_SIZE = 2 + 1,              /* "ab" */
    BLOB_NAME_SIZE = 2 + 1 + 64 + 1, /* "ab/abcd...": relative to the folder */
    TEMP_NAME_SIZE = 12 + 16 + 1     /* ".gpu-worker.0123456789abcdef": relative to its shelf */
};

struct folder {
    int fd;              /* -1: it is not open */
    const char *setting; /* the setting that names it, such as "blobs.dir" */
};

/** A file that is being written. */
struct temp_file {
    const struct folder *folder;
    struct digest digest; /* of its future contents */
    int shelf_fd, fd;
    uint64_t bytes;            /* that temp_file_write() has written */
    char name[TEMP_NAME_SIZE]; /* that it has, or is to get */
    bool is_named;
};

/** Writes the blob's relative name, NUL-terminated, and returns it. */
const char *blob_name(const struct digest *digest, char name[static BLOB_NAME_SIZE]);

/**
 * Opens `path`, the value of `setting`; creates its last part with `mode` if it is missing. Errors:
 * ERR_CONFIG.
 */
MUST_CHECK enum err folder_open(
    struct folder *folder, const char *setting, const char *path, mode_t mode, struct error *err);
void folder_close(struct folder *folder); /* one that was not opened (fd -1) is fine */

/**
 * Copies a blob, checks size and digest of the copy, and marks the file as used. ERR_BLOB_MISSING,
 * ERR_DIGEST_MISMATCH, ERR_NO_MEMORY, ERR_IO.
 */
MUST_CHECK enum err folder_read(const struct folder *folder, const struct digest *digest,
    uint64_t bytes, struct blob_memory *memory, struct blob *ret, struct error *err);

/** As folder_read(), for a payload that stays in its file (parts.h). */
MUST_CHECK enum err folder_read_parts(const struct folder *folder, const struct digest *digest,
    uint64_t bytes, struct blob_memory *memory, struct blob *ret, struct error *err);

/** Marks a blob as used now; false if there is none of that size. */
bool folder_touch(const struct folder *folder, const struct digest *digest, uint64_t bytes);
void folder_remove(const struct folder *folder, const struct digest *digest);

MUST_CHECK enum err temp_file_create(const struct folder *folder, const struct digest *digest,
    struct temp_file *ret, struct error *err);
/** Behind what it has written before. */
MUST_CHECK enum err temp_file_write(struct temp_file *file, struct slice bytes, struct error *err);
/** All of it is written: `parts` reads it (parts.h), also once it is closed and removed. Errors:
 * those of parts_open(). */
MUST_CHECK enum err temp_file_open_parts(
    const struct temp_file *file, struct blob_parts *parts, struct error *err);
/** Of a file whose contents were not known when it was created: these are they. */
MUST_CHECK enum err temp_file_name(
    struct temp_file *file, const struct digest *digest, struct error *err);
/** Gives the file its name, replacing an older file; it stays open. */
MUST_CHECK enum err temp_file_commit(struct temp_file *file, struct error *err);
/** As temp_file_commit(); afterwards bytes and name outlive a crash. */
MUST_CHECK enum err temp_file_commit_durably(struct temp_file *file, struct error *err);
void temp_file_close(struct temp_file *file);
void temp_file_discard(struct temp_file *file); /* removes it, and closes */

/** A plain file of the folder. */
struct folder_file {
    char shelf[SHELF_SIZE];
    char name[BLOB_NAME_SIZE]; /* on its shelf */
    bool is_temp;              /* unfinished; otherwise a blob */
    bool has_other_names;
    struct digest digest;
    uint64_t bytes;
    uint64_t used_unix_ns;
};

/** Calls `visit` for each blob and unfinished file; ignores files with other names. */
void folder_visit(const struct folder *folder,
    void (*visit)(void *context, const struct folder_file *file), void *context);

/**
 * Removes the file if its last use was before `before_unix_ns`. Safe if the file is being marked as
 * used at the same time.
 */
void folder_expire(
    const struct folder *folder, const struct folder_file *file, uint64_t before_unix_ns);

#endif

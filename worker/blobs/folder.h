/**
 * A folder of blobs: `<path>/<first two hex>/<64 hex>`. A file appears under its name whole, by a
 * rename; until then it has a temporary name, which starts with a dot, in the same folder. The time
 * of a file's last use is its mtime.
 *
 * Private to blobs/. Threads: any; the file system is the only state.
 */
#ifndef BLOBS_FOLDER_H
#define BLOBS_FOLDER_H

#include <sys/types.h>

#include "blobs/blobs.h"

enum {
    BLOB_NAME_SIZE = 2 + 1 + 64 + 1,    /* "ab/abcd...": relative to the folder */
    TEMP_NAME_SIZE = 2 + 1 + 1 + 16 + 1 /* "ab/.0123456789abcdef" */
};

struct folder {
    int fd;
    char *path; /* for messages */
};

/** A file that is being written. */
struct temp_file {
    const struct folder *folder;
    int fd;
    char name[TEMP_NAME_SIZE];
};

/** Writes the blob's relative name, NUL-terminated, and returns it. */
const char *blob_name(const struct digest *digest, char name[static BLOB_NAME_SIZE]);

/** Opens `path`, making its last part with `mode` where it is missing. ERR_CONFIG, ERR_NO_MEMORY.
 */
MUST_CHECK enum err folder_open(
    struct folder *folder, const char *path, mode_t mode, struct error *err);
void folder_close(struct folder *folder); /* one that was not opened (zeroed, fd -1) is fine */

/**
 * Maps a blob, checks size and digest, and marks it as used. ERR_BLOB_MISSING, ERR_DIGEST_MISMATCH,
 * ERR_IO.
 */
MUST_CHECK enum err folder_map(const struct folder *folder, const struct digest *digest,
    uint64_t bytes, struct blob *ret, struct error *err);

/** Marks a blob as used now; false where there is none of that size. */
bool folder_touch(const struct folder *folder, const struct digest *digest, uint64_t bytes);
void folder_remove(const struct folder *folder, const struct digest *digest);

MUST_CHECK enum err temp_file_create(const struct folder *folder, const struct digest *digest,
    struct temp_file *ret, struct error *err);
MUST_CHECK enum err temp_file_write(
    const struct temp_file *file, struct slice bytes, struct error *err);
/** Maps what was written, all of its `bytes`, and does not look at them. */
MUST_CHECK enum err temp_file_map(
    const struct temp_file *file, uint64_t bytes, struct blob *ret, struct error *err);
/** Gives the file its name, in place of an older one; it stays open. */
MUST_CHECK enum err temp_file_commit(
    const struct temp_file *file, const struct digest *digest, struct error *err);
/** The same, and afterwards bytes and name outlive a crash. */
MUST_CHECK enum err temp_file_commit_durably(
    const struct temp_file *file, const struct digest *digest, struct error *err);
void temp_file_close(struct temp_file *file);
void temp_file_discard(struct temp_file *file); /* removes it, and closes */

/** A file of the folder, named relative to it. */
struct folder_file {
    char name[BLOB_NAME_SIZE];
    bool is_temp; /* unfinished; else a blob's */
    struct digest digest;
    uint64_t bytes;
    uint64_t used_unix_ns;
};

/** Calls `visit` for each blob and unfinished file; what has another name is nobody's business. */
void folder_visit(const struct folder *folder,
    void (*visit)(void *context, const struct folder_file *file), void *context);

/** Removes the file if its last use was before `before_unix_ns`, also when that changed just now.
 */
void folder_expire(
    const struct folder *folder, const struct folder_file *file, uint64_t before_unix_ns);

#endif

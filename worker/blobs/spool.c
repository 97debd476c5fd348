#include "blobs/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "blobs/blob.h"
#include "blobs/folder.h"
#include "blobs/http.h"

enum { READ_BYTES = 1 << 20 };

struct spool {
    struct blob_memory *memory; /* counts its file */
    struct temp_file file;
    uint64_t bytes;
    mode_t mode; /* that it is to have once it is stored */
    bool is_stored;
};

static enum err io_failed(const struct spool *spool, const char *what, struct error *err) {
    int native = errno;
    error_set(err, ERR_IO, native, "check the permissions and the state of the disk",
        "cannot %s an output for the blob store: %s", what, strerror(native));
    return blob_memory_note_disk(spool->memory, ERR_IO, err);
}

/* Ours alone for now, and as long as it will be. */
static enum err prepare(struct spool *spool, struct error *err) {
    struct stat status;
    int fd = spool->file.fd;
    if (fstat(fd, &status) != 0 || fchmod(fd, 0600) != 0 || ftruncate(fd, (off_t)spool->bytes) != 0)
        return io_failed(spool, "make room for", err);
    spool->mode = status.st_mode & 0777;
    return ERR_OK;
}

static struct spool *create(struct blob_memory *memory, uint64_t bytes) {
    if (!blob_memory_take_file(memory)) return NULL;
    struct spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL) blob_memory_give_file(memory);
    else *spool = (struct spool){.memory = memory, .bytes = bytes};
    return spool;
}

static void destroy(struct spool *spool) {
    blob_memory_give_file(spool->memory);
    free(spool);
}

enum err spool_create(const struct folder *folder, struct blob_memory *memory, uint64_t bytes,
    struct spool **ret, struct error *err) {
    static const struct digest unknown;
    struct spool *spool = create(memory, bytes);
    if (spool == NULL)
        return error_set(err, ERR_NO_MEMORY, 0,
            "give the process more memory, or let fewer arrays come at once",
            "no room for an output that goes to the blob store beside those of other jobs");
    enum err code = temp_file_create(folder, &unknown, &spool->file, err);
    if (code != ERR_OK) {
        destroy(spool);
        return blob_memory_note_disk(memory, code, err);
    }
    code = prepare(spool, err);
    if (code == ERR_OK) *ret = spool;
    else spool_destroy(spool);
    return code;
}

enum err spool_write(struct spool *spool, uint64_t offset, struct slice bytes, struct error *err) {
    INVARIANT(offset <= spool->bytes && bytes.size <= spool->bytes - offset,
        "what is written lies in the output");
    pulse_outside();
    bool is_written = file_write_at(spool->file.fd, offset, bytes);
    enum err code = is_written ? ERR_OK : io_failed(spool, "write", err);
    pulse_busy();
    return code;
}

static enum err hash_all(const struct spool *spool, uint8_t *room, struct digester *digester,
    struct digest *ret, struct error *err) {
    uint64_t at = 0;
    while (at < spool->bytes) {
        pulse_busy(); /* all of it may take long */
        ssize_t got = pread(spool->file.fd, room, READ_BYTES, (off_t)at);
        if (got == 0) errno = EIO;
        if (got == 0 || (got < 0 && errno != EINTR)) return io_failed(spool, "read", err);
        if (got < 0) continue;
        digester_add(digester, slice_of(room, (size_t)got));
        at += (uint64_t)got;
    }
    *ret = digester_finish(digester);
    return ERR_OK;
}

static enum err find_digest(const struct spool *spool, struct digest *ret, struct error *err) {
    uint8_t *room = malloc(READ_BYTES);
    struct digester *digester = digester_create();
    enum err code = ERR_NO_MEMORY;
    if (room != NULL && digester != NULL) code = hash_all(spool, room, digester, ret, err);
    else error_set(err, code, 0, "give the process more memory", "no memory to read an output");
    digester_destroy(digester);
    free(room);
    return code;
}

enum err spool_store(struct spool *spool, struct digest *ret, struct error *err) {
    enum err code = find_digest(spool, ret, err);
    if (code != ERR_OK) return code;
    if (folder_touch(spool->file.folder, ret, spool->bytes)) return ERR_OK;
    if (fchmod(spool->file.fd, spool->mode) != 0) return io_failed(spool, "store", err);
    code = temp_file_name(&spool->file, ret, err);
    if (code == ERR_OK) code = temp_file_commit_durably(&spool->file, err);
    spool->is_stored = code == ERR_OK;
    return blob_memory_note_disk(spool->memory, code, err);
}

/* Mapped, so that no memory of this process has to have it whole. */
enum err spool_send(
    struct spool *spool, struct http_client *http, struct digest *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    enum err code = find_digest(spool, ret, err);
    if (code != ERR_OK) return code;
    void *bytes = mmap(NULL, spool->bytes, PROT_READ, MAP_SHARED, spool->file.fd, 0);
    if (bytes == MAP_FAILED) return io_failed(spool, "read", err);
    code = http_put_blob(http, blob_name(ret, name), slice_of(bytes, spool->bytes), err);
    (void)munmap(bytes, spool->bytes);
    return code;
}

void spool_destroy(struct spool *spool) {
    if (spool == NULL) return;
    (spool->is_stored ? temp_file_close : temp_file_discard)(&spool->file);
    destroy(spool);
}

void spools_end(struct spool **spools, size_t count) {
    for (size_t i = 0; spools != NULL && i < count; i++) {
        spool_destroy(spools[i]);
        spools[i] = NULL;
    }
}

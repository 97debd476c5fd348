#include "blobs/copy.h"

#include <inttypes.h>
#include <sys/mman.h>

enum { PIECE_BYTES_MAX = 1 << 20 }; /* small enough to be hashed while in the processor's cache */

/* ---- memory ---- */

static enum err map(
    struct blob_memory *memory, uint64_t bytes, struct blob *ret, struct error *err) {
    if (!blob_memory_take(memory, bytes))
        return error_set(err, ERR_NO_MEMORY, 0,
            "raise blobs.bytes_max, or let fewer jobs with blobs come at once",
            "no room for a blob of %" PRIu64 " bytes beside those that other jobs hold", bytes);
    /* no other process shares it, but only a MAP_SHARED mapping may be registered (gpu/upload.h) */
    void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        blob_memory_give(memory, bytes);
        return error_no_memory(err, "no memory for a blob of %" PRIu64 " bytes", bytes);
    }
    *ret = (struct blob){.bytes = slice_of(mapping, bytes), .mapping = mapping, .memory = memory};
    return ERR_OK;
}

/* ---- a copy ---- */

enum err copy_begin(
    struct blob_memory *memory, uint64_t bytes, struct copy *ret, struct error *err) {
    *ret = (struct copy){.digester = digester_create()};
    if (ret->digester == NULL) return error_no_memory(err, "no memory to read a blob");
    return map(memory, bytes, &ret->blob, err);
}

void *copy_room(const struct copy *copy, size_t *bytes) {
    uint64_t left = copy->blob.bytes.size - copy->filled;
    *bytes = left < PIECE_BYTES_MAX ? left : PIECE_BYTES_MAX;
    return (uint8_t *)copy->blob.mapping + copy->filled;
}

void copy_filled(struct copy *copy, size_t bytes) {
    digester_add(copy->digester, slice_of(copy->blob.bytes.data + copy->filled, bytes));
    copy->filled += bytes;
}

enum err copy_finish(
    struct copy *copy, const struct digest *digest, struct blob *ret, struct error *err) {
    char name[DIGEST_TEXT_SIZE];
    if (copy->filled != copy->blob.bytes.size)
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "%s has %" PRIu64 " bytes in the blob store, and the job says %zu",
            digest_format(digest, name), copy->filled, copy->blob.bytes.size);
    struct digest found = digester_finish(copy->digester);
    if (!digest_equal(&found, digest))
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "store the payload again",
            "the blob store has other bytes at %s than the name says", digest_format(digest, name));
    *ret = copy->blob;
    copy->blob = (struct blob){0};
    return ERR_OK;
}

void copy_fini(struct copy *copy) {
    blob_fini(&copy->blob);
    digester_destroy(copy->digester);
    *copy = (struct copy){0};
}

/**
 * A payload that stays in its file and is read in parts. All of it is read and hashed once, when it
 * is opened; the digests of its parts are kept, and whatever is read later is checked against them.
 * So a writer that changes or truncates the file meanwhile has no effect but an error.
 *
 * Private to blobs/. Units: bytes. Memory: one 8192th of the payload, and an open file. Threads:
 * any, once it is open.
 */
#ifndef BLOBS_PARTS_H
#define BLOBS_PARTS_H

#include "base/digest.h"
#include "base/error.h"
#include "blobs/memory.h"

struct blob_parts;

/** Room for a payload of so many bytes, whose file may be yet to come. Errors: ERR_NO_MEMORY, also
 * while others hold too much. */
MUST_CHECK enum err parts_create(
    uint64_t bytes, struct blob_memory *memory, struct blob_parts **ret, struct error *err);

/**
 * `fd` is a file with the payload, or with more; parts_close() closes it. After an error it is the
 * caller's. Errors: ERR_DIGEST_MISMATCH, ERR_NO_MEMORY, ERR_IO.
 */
MUST_CHECK enum err parts_open(
    struct blob_parts *parts, int fd, const struct digest *digest, struct error *err);

/** Only once it is open. Errors: ERR_DIGEST_MISMATCH, if the file has changed; ERR_NO_MEMORY;
 * ERR_IO, which the store notes as its trouble. */
MUST_CHECK enum err parts_read(
    const struct blob_parts *parts, uint64_t offset, void *to, size_t bytes, struct error *err);

void parts_close(struct blob_parts *parts); /* NULL is fine */

#endif

/**
 * A payload of the blob store. Units: bytes. Threads: one at a time, but for blob_read(), which is
 * for any.
 */
#ifndef BLOBS_BLOB_H
#define BLOBS_BLOB_H

#include "base/error.h"
#include "base/slice.h"
#include "blobs/trouble.h"

struct blob_memory;
struct blob_parts;

/** A payload, in anonymous memory of this process, or in a file of the store. */
struct blob {
    struct slice bytes;         /* of one in memory */
    void *mapping;              /* what blob_fini() unmaps; NULL: there is none */
    struct blob_memory *memory; /* private: the account that it counts against */
    struct blob_parts *parts;   /* private: of one in a file; NULL: it is in memory */
};

/**
 * Copies a part of the payload, which lies inside of it. From a file it may wait for a disk.
 * Errors: ERR_DIGEST_MISMATCH, if the file was changed; ERR_NO_MEMORY, ERR_IO.
 */
MUST_CHECK enum err blob_read(
    const struct blob *blob, uint64_t offset, void *to, size_t bytes, struct error *err);

void blob_fini(struct blob *blob); /* a zeroed one is fine */

#endif

/**
 * The blob store: immutable payloads as files named by their digest, `<dir>/<first two hex>/<64
 * hex>`.
 *
 * Nothing that a job carries can name a path: only digests reach the file system. Files are written
 * by others with a rename, so a file that is there is whole; its digest is checked all the same.
 *
 * Units: bytes. Threads: any.
 */
#ifndef PREPARE_BLOBS_H
#define PREPARE_BLOBS_H

#include "base/digest.h"
#include "base/error.h"

struct blob {
    struct slice bytes;
    void *mapping; /* private: what blob_fini() unmaps */
};

/**
 * Maps the payload of `digest`, which must be `bytes` long, read-only. `dir` "" is a store that has
 * nothing. ERR_BLOB_MISSING, ERR_DIGEST_MISMATCH (other length or content), ERR_IO.
 */
MUST_CHECK enum err blob_open(const char *dir, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err);

void blob_fini(struct blob *blob); /* a zeroed one is fine */

#endif

/**
 * Copies payloads into memory of this process: bytes are copied, the copy is hashed, and the copy
 * is used. So a writer that changes or truncates the source meanwhile has no effect.
 *
 * Private to blobs/. Units: bytes. Threads: a copy belongs to one thread.
 */
#ifndef BLOBS_COPY_H
#define BLOBS_COPY_H

#include "base/digest.h"
#include "base/error.h"
#include "blobs/blob.h"
#include "blobs/memory.h"

/** A payload that is arriving. */
struct copy {
    struct blob blob;
    uint64_t filled; /* bytes so far */
    struct digester *digester;
};

/** Errors: ERR_NO_MEMORY, also while other copies hold all that `memory` allows. */
MUST_CHECK enum err copy_begin(
    struct blob_memory *memory, uint64_t bytes, struct copy *ret, struct error *err);

/** Where to put the next bytes, and how many at most: 0 when the copy is full. */
void *copy_room(const struct copy *copy, size_t *bytes);
void copy_filled(struct copy *copy, size_t bytes); /* this many were added */

/**
 * Moves the payload to `ret` if it is complete and has this digest. Errors: ERR_DIGEST_MISMATCH.
 */
MUST_CHECK enum err copy_finish(
    struct copy *copy, const struct digest *digest, struct blob *ret, struct error *err);

void copy_fini(struct copy *copy); /* also after copy_finish(); a zeroed one is fine */

#endif

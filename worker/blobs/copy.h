/**
 * Copies of payloads in memory of our own: bytes are copied, the copy is hashed, and the copy is
 * used. A writer that changes or cuts the source meanwhile changes nothing here.
 *
 * Private to blobs/. Units: bytes. Threads: a copy is one thread's; its memory is any's.
 */
#ifndef BLOBS_COPY_H
#define BLOBS_COPY_H

#include <stdatomic.h>

#include "base/digest.h"
#include "base/error.h"
#include "blobs/blob.h"

/** What all copies of a store may take. */
struct blob_memory {
    uint64_t bytes_max;
    atomic_uint_fast64_t held; /* relaxed: it says nothing of other memory */
};

/** A payload that is arriving. */
struct copy {
    struct blob blob;
    uint64_t filled; /* of its bytes */
    struct digester *digester;
};

/** ERR_NO_MEMORY, also where others hold what `memory` allows. */
MUST_CHECK enum err copy_begin(
    struct blob_memory *memory, uint64_t bytes, struct copy *ret, struct error *err);

/** Where the next bytes go, and how many at most: 0 once all are there. */
void *copy_room(const struct copy *copy, size_t *bytes);
void copy_filled(struct copy *copy, size_t bytes); /* so many of them are there */

/** Moves the payload to `ret` if it is whole and has this digest, else ERR_DIGEST_MISMATCH. */
MUST_CHECK enum err copy_finish(
    struct copy *copy, const struct digest *digest, struct blob *ret, struct error *err);

void copy_fini(struct copy *copy); /* also after copy_finish(); a zeroed one is fine */

#endif

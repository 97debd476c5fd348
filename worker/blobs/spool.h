/**
 * An output on its way to the blob store, as its parts come: a file in the store's folder, or in
 * the cache of one behind HTTP, without a name until all of it is there. No other user may write to
 * it meanwhile, since only the whole file is hashed. What is not written is zeros.
 *
 * Units: bytes. Lifetime: blobs_create_spool() to spool_destroy(). Threads: any may write; nobody
 * writes any more when it is stored (blobs_put_spool()) or destroyed.
 */
#ifndef BLOBS_SPOOL_H
#define BLOBS_SPOOL_H

#include "base/digest.h"
#include "base/error.h"

struct spool;

/** The bytes lie inside of it. Errors: ERR_IO, which the store notes as its trouble. */
MUST_CHECK enum err spool_write(
    struct spool *spool, uint64_t offset, struct slice bytes, struct error *err);

struct blob_memory;
struct folder;
struct http_client;

/** Private to blobs/. Errors: ERR_IO; ERR_NO_MEMORY, also while others have too many files open. */
MUST_CHECK enum err spool_create(const struct folder *folder, struct blob_memory *memory,
    uint64_t bytes, struct spool **ret, struct error *err);

/** Private to blobs/: names it by what is in it; then it outlives a crash. Errors: ERR_IO,
 * ERR_NO_MEMORY. */
MUST_CHECK enum err spool_store(struct spool *spool, struct digest *ret, struct error *err);

/** Private to blobs/: puts all of it to a store behind HTTP. Errors: ERR_IO, ERR_NO_MEMORY. */
MUST_CHECK enum err spool_send(
    struct spool *spool, struct http_client *http, struct digest *ret, struct error *err);

/** Removes what was not stored. NULL is fine. */
void spool_destroy(struct spool *spool);

/** Of an array of them, which are NULL then. A NULL array is fine. */
void spools_end(struct spool **spools, size_t count);

#endif

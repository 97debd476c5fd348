/**
 * What came through HTTP, kept in a folder of this process alone, within a budget: the least
 * recently used blobs leave first. Whoever claims a blob that is not there fetches it; others who
 * want it wait for that.
 *
 * A blob that leaves while it is mapped stays readable, and its disk space is free after the last
 * blob_fini(). The folder survives the process: what is found in it at start is used again.
 *
 * Private to blobs/. Units: bytes. Threads: any.
 */
#ifndef BLOBS_CACHE_H
#define BLOBS_CACHE_H

#include "blobs/folder.h"

struct cache;
struct cache_entry;

/** ERR_CONFIG where the folder cannot be used or another process has it. */
MUST_CHECK enum err cache_create(
    const char *path, uint64_t budget_bytes, struct cache **ret, struct error *err);
void cache_destroy(struct cache *cache); /* NULL is fine; the files stay */

const struct folder *cache_folder(const struct cache *cache);

/**
 * Waits while somebody fetches the blob. *ret NULL: it is there. Else the caller fetches `bytes`,
 * for which there is room now if there can be, and ends with cache_settle(). ERR_DIGEST_MISMATCH:
 * it was fetched, and has another size. ERR_NO_MEMORY.
 */
MUST_CHECK enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err);

/**
 * Ends a claim. `file` is the blob, checked; NULL: it could not be had. True where the file got its
 * name and is the cache's from now on.
 */
bool cache_settle(struct cache *cache, struct cache_entry *entry, const struct temp_file *file);

/** Removes a blob that turned out to be damaged. */
void cache_forget(struct cache *cache, const struct digest *digest);

uint64_t cache_bytes(struct cache *cache); /* kept or being fetched to be kept */

#endif

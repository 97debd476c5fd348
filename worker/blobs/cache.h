/**
 * The cache of blobs from HTTP, in a folder for this process only, within a budget; each blob
 * counts as at least 4 KiB. Room is made only for blobs that have arrived and match their digest;
 * base/eviction.h says which ones leave. The first thread that claims a missing blob fetches it;
 * the others wait.
 *
 * The folder outlives the process: blobs found in it at the start are used again.
 *
 * Private to blobs/. Units: bytes. Threads: any.
 */
#ifndef BLOBS_CACHE_H
#define BLOBS_CACHE_H

#include "blobs/folder.h"

struct cache;
struct cache_entry;

/** Errors: ERR_CONFIG, if the folder cannot be used or another process uses it. */
MUST_CHECK enum err cache_create(
    const char *path, uint64_t budget_bytes, struct cache **ret, struct error *err);
void cache_destroy(struct cache *cache); /* NULL is fine; the files stay */

const struct folder *cache_folder(const struct cache *cache);

/**
 * Claims a blob; waits while another thread fetches it. *ret NULL: it is in the cache. Otherwise
 * the caller must fetch `bytes` and call cache_settle(). Errors: ERR_DIGEST_MISMATCH, if it was
 * fetched and has another size; ERR_NO_MEMORY.
 */
MUST_CHECK enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err);

/**
 * Whether a claimed blob, which was fetched and checked, should get a file. Removes nothing yet:
 * the disk may be full.
 */
bool cache_wants(struct cache *cache, struct cache_entry *entry);

/**
 * Ends a claim. `file` contains the checked blob; NULL: there is no file. *ret_is_kept: the file
 * was renamed, and now belongs to the cache. Errors: ERR_IO, if it could not be renamed.
 */
MUST_CHECK enum err cache_settle(struct cache *cache, struct cache_entry *entry,
    struct temp_file *file, bool *ret_is_kept, struct error *err);

/** Removes a blob that turned out to be damaged. */
void cache_forget(struct cache *cache, const struct digest *digest);

#endif

/**
 * What came through HTTP, kept in a folder of this process alone, within a budget, each blob
 * counted as 4 KiB at least. Room is made only for bytes that have arrived and matched their
 * digest, and by their use: blobs that were fetched once and not used since leave first, the least
 * recently used among them; one that is used again leaves only for one that is used more.
 * The first thread that claims a missing blob fetches it; the others wait for that.
 *
 * The folder survives the process: what is found in it at start is used again.
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
 * Waits while somebody fetches the blob. *ret NULL: it is there. Else the caller fetches `bytes`
 * and ends with cache_settle(). ERR_DIGEST_MISMATCH: it was fetched, and has another size.
 * ERR_NO_MEMORY.
 */
MUST_CHECK enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err);

/** Whether a claimed blob, which has arrived and is right, is worth a file. Nothing leaves yet. */
bool cache_wants(struct cache *cache, struct cache_entry *entry);

/**
 * Ends a claim. `file` holds the blob, checked; NULL: there is none to keep. *ret_is_kept: the file
 * got its name and is the cache's from now on. ERR_IO: it could not get its name.
 */
MUST_CHECK enum err cache_settle(struct cache *cache, struct cache_entry *entry,
    const struct temp_file *file, bool *ret_is_kept, struct error *err);

/** Removes a blob that turned out to be damaged. */
void cache_forget(struct cache *cache, const struct digest *digest);

#endif

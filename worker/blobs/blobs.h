/**
 * The blob store: immutable payloads named by their digest, in a folder that senders and workers
 * share (`<dir>/<first two hex>/<64 hex>`), or behind HTTP (`<url>/<first two hex>/<64 hex>`, GET
 * and PUT) with a cache on the disk of this machine.
 *
 * Nothing that a job carries can name a path or a URL: only digests reach the store. A payload is
 * written under another name, synced and renamed, so a file that exists is complete. Other writers
 * in the folder are still not trusted: a payload is copied into memory of this process, the copy is
 * hashed, and the copy is used. No link is followed, and only plain files below the folder are
 * opened, marked or removed.
 *
 * ERR_IO is a problem of the store, not of the job, and struct error says so.
 *
 * Units: bytes. Lifetime: from blobs_create() to blobs_destroy(), which comes after the last
 * blob_fini(). Threads: any that may wait for a disk or a network, so never a lane.
 */
#ifndef BLOBS_BLOBS_H
#define BLOBS_BLOBS_H

#include "base/digest.h"
#include "base/error.h"
#include "blobs/blob.h"
#include "blobs/spool.h"

struct blobs_options {
    const char *dir;         /* the folder; NULL if the store is behind HTTP */
    const char *url;         /* http:// or https://, may carry credentials; NULL with `dir` */
    const char *cache_dir;   /* with `url`: a folder for this process only, created if missing */
    uint64_t cache_bytes;    /* most that the cache keeps; 0: nothing */
    uint64_t bytes_max;      /* of one blob */
    uint64_t held_bytes_max; /* host memory for blobs between open and fini; bytes_max at least */
    uint32_t max_age_hours;  /* with `dir`: a blob expires that long after its last use; 0: never */
    uint32_t timeout_ms;     /* of one HTTP request */
    /** Called when a blob could not be cached; it is still used. May be NULL. */
    void (*on_not_cached)(void *context, const struct error *err);
    void *context;
};

struct blobs;

/**
 * Opens the store. A thread of the store removes expired blobs, and files that crashed writers
 * left, at once and then every hour. Errors: ERR_CONFIG or ERR_IO, if the store cannot be used.
 */
MUST_CHECK enum err blobs_create(
    const struct blobs_options *options, struct blobs **ret, struct error *err);
void blobs_destroy(struct blobs *blobs); /* NULL is fine */

/**
 * Reads the payload of `digest`, which must be `bytes` (> 0) long. `blobs` may be NULL: an empty
 * store. If several threads ask for a blob at once, it is fetched over HTTP only once. Errors:
 * ERR_BLOB_MISSING, ERR_DIGEST_MISMATCH (other length or content), ERR_TOO_LARGE, ERR_NO_MEMORY
 * (also while others hold too much), and ERR_IO.
 */
MUST_CHECK enum err blob_open(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err);

/**
 * The same for a payload that is read in parts (blob_read()), from its file in the folder, or from
 * one in the cache: it may be larger than bytes_max, and takes one 8192th of its size in memory.
 * Beside what the cache keeps, its folder has such a file for each blob that is open.
 */
MUST_CHECK enum err blob_open_parts(struct blobs *blobs, const struct digest *digest,
    uint64_t bytes, struct blob *ret, struct error *err);

/**
 * Stores `payload`, which has this digest. After ERR_OK, the payload outlives a crash. If it is
 * stored already, it is only marked as used now. Errors: ERR_TOO_LARGE, ERR_IO, ERR_NO_MEMORY.
 */
MUST_CHECK enum err blobs_put(
    struct blobs *blobs, const struct digest *digest, struct slice payload, struct error *err);

/** Starts a payload of so many bytes that comes in parts, of any size (spool.h). Errors: ERR_IO,
 * ERR_NO_MEMORY. */
MUST_CHECK enum err blobs_create_spool(
    struct blobs *blobs, uint64_t bytes, struct spool **ret, struct error *err);

/** Stores it as blobs_put() does. Errors: ERR_IO, ERR_NO_MEMORY. */
MUST_CHECK enum err blobs_put_spool(
    struct blobs *blobs, struct spool *spool, struct digest *ret, struct error *err);

/**
 * blobs_answers(): how often the store has answered since the start, also that it has no such blob.
 * The other: BLOBS_DISK_FULL from when its disk was full until a whole blob was written there; else
 * BLOBS_TROUBLE if its last request failed; else "". For NULL: 0, and "".
 */
uint64_t blobs_answers(const struct blobs *blobs);
const char *blobs_trouble(const struct blobs *blobs);

/**
 * Whether payloads are open, or outputs on their way to the store: what they hold, for which others
 * find no room, comes back. NULL: false.
 */
bool blobs_are_held(const struct blobs *blobs);

/**
 * What the store's thread does every hour: removes the blobs of `dir` that were last used more than
 * max_age_hours before `now_unix_s`, and unfinished files older than an hour. For tests.
 */
void blobs_sweep(struct blobs *blobs, uint64_t now_unix_s);

#endif

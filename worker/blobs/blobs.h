/**
 * The blob store: immutable payloads named by their digest, in a folder that senders and workers
 * share (`<dir>/<first two hex>/<64 hex>`), or behind HTTP (`<url>/<first two hex>/<64 hex>`, GET
 * and PUT) with a cache on the disk of this machine.
 *
 * Nothing that a job carries can name a path or a URL: only digests reach the store. A payload is
 * written under another name, synced and renamed, so a file that is there is whole. Who may write
 * in the folder is not trusted all the same: a payload is copied into memory of our own, the copy
 * is hashed, and the copy is used. No link is followed, and nothing but plain files below the
 * folder is opened, marked or removed.
 *
 * ERR_IO is the store's own trouble, not the job's, and struct error says so.
 *
 * Units: bytes. Lifetime: blobs_create() to blobs_destroy(), after the last blob_fini(). Threads:
 * any that may wait for a disk or a network, so never a lane's.
 */
#ifndef BLOBS_BLOBS_H
#define BLOBS_BLOBS_H

#include "base/digest.h"
#include "base/error.h"
#include "blobs/blob.h"

struct blobs_options {
    const char *dir;         /* the folder; NULL where the store is behind HTTP */
    const char *url;         /* http:// or https://, may carry credentials; NULL with `dir` */
    const char *cache_dir;   /* with `url`: this process's alone, made where it is missing */
    uint64_t cache_bytes;    /* most that the cache keeps; 0: nothing */
    uint64_t bytes_max;      /* of one blob */
    uint64_t held_bytes_max; /* host memory for blobs between open and fini; bytes_max at least */
    uint32_t max_age_hours;  /* with `dir`: a blob expires that long after its last use; 0: never */
    uint32_t timeout_ms;     /* of one HTTP request */
    /** A blob could not be kept in the cache, and is used all the same. NULL: nobody asks. */
    void (*on_not_cached)(void *context, const struct error *err);
    void *context;
};

/** What ERR_IO of the store is, as struct error has it. */
#define BLOBS_TROUBLE "blob_store"

struct blobs;

/**
 * Opens the store; ERR_CONFIG or ERR_IO where it cannot be used. Expired blobs, and what crashed
 * writers left, are removed by a thread of the store at once and then every hour.
 */
MUST_CHECK enum err blobs_create(
    const struct blobs_options *options, struct blobs **ret, struct error *err);
void blobs_destroy(struct blobs *blobs); /* NULL is fine */

/**
 * Reads the payload of `digest`, which must be `bytes` (> 0) long. `blobs` NULL is a store that has
 * nothing. However many ask for one blob at once, it is fetched once.
 * ERR_BLOB_MISSING, ERR_DIGEST_MISMATCH (other length or content), ERR_TOO_LARGE, ERR_NO_MEMORY
 * (also while others hold too much), and ERR_IO.
 */
MUST_CHECK enum err blob_open(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err);

/**
 * Stores `payload`, whose digest this is; when it returns ERR_OK, the payload outlives a crash. One
 * that is there already is only marked as used now. ERR_TOO_LARGE, ERR_IO, ERR_NO_MEMORY.
 */
MUST_CHECK enum err blobs_put(
    struct blobs *blobs, const struct digest *digest, struct slice payload, struct error *err);

/**
 * How often the store has answered since the start, be it that it has no such blob; and whether it
 * failed when it was asked last. NULL: 0, and false.
 */
uint64_t blobs_answers(const struct blobs *blobs);
bool blobs_are_troubled(const struct blobs *blobs);

/**
 * What the store's thread does every hour: removes the blobs of `dir` that were last used more than
 * max_age_hours before `now_unix_s`, and unfinished files older than an hour. For tests.
 */
void blobs_sweep(struct blobs *blobs, uint64_t now_unix_s);

#endif

/**
 * Blobs behind HTTP: what the answers to requests mean for a blob. Private to blobs/. Threads: any.
 */
#ifndef BLOBS_HTTP_H
#define BLOBS_HTTP_H

#include "http/client.h"

/**
 * Gets the blob of that name (`<two hex>/<64 hex>`). Errors: ERR_BLOB_MISSING for 404, the code of
 * `take`, ERR_DIGEST_MISMATCH if the blob is longer than `bytes_max`, and ERR_IO for everything
 * else.
 */
MUST_CHECK enum err http_get_blob(struct http_client *client, const char *name, uint64_t bytes_max,
    http_take *take, void *context, struct error *err);

/** Puts `payload` there. ERR_IO. */
MUST_CHECK enum err http_put_blob(
    struct http_client *client, const char *name, struct slice payload, struct error *err);

#endif

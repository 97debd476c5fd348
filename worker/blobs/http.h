/**
 * GET and PUT below one base URL, through libcurl. Certificates are verified. A GET follows
 * redirects only to the same scheme, host and port, at most three; a PUT follows none. Credentials
 * in the URL appear in no error message; the rest of the URL only in ERR_IO, which senders do not
 * see.
 *
 * Private to blobs/. Threads: any; each request has a connection of its own while it lasts.
 */
#ifndef BLOBS_HTTP_H
#define BLOBS_HTTP_H

#include "base/error.h"
#include "base/slice.h"

struct http;

/** `timeout_ms` bounds a whole request. Errors: ERR_CONFIG, if the URL cannot be used. */
MUST_CHECK enum err http_create(
    const char *url, uint32_t timeout_ms, struct http **ret, struct error *err);
void http_destroy(struct http *http); /* NULL is fine */

/** Takes the next piece of a body. Any code but ERR_OK ends the request with that code. */
typedef enum err http_take(void *context, struct slice piece, struct error *err);

/**
 * Gets `<url>/<name>`. Errors: ERR_BLOB_MISSING for 404, the code of `take`, ERR_DIGEST_MISMATCH if
 * the body is longer than `bytes_max`, and ERR_IO for everything else.
 */
MUST_CHECK enum err http_get(struct http *http, const char *name, uint64_t bytes_max,
    http_take *take, void *context, struct error *err);

/** Puts `payload` at `<url>/<name>`. ERR_IO. */
MUST_CHECK enum err http_put(
    struct http *http, const char *name, struct slice payload, struct error *err);

#endif

/**
 * Pages over HTTP for whoever watches a worker: GET and HEAD of a few paths, each page written anew
 * for who asks. The bytes that come in, the connections and the time that each may be silent are
 * bounded, and a new connection closes the oldest where there are too many; there is no TLS and
 * nobody is asked who they are, so the address decides who can read.
 *
 * Lifetime: http_listen() to http_close(). Threads: one at a time; there is none behind it: the
 * caller waits for http_fd() and calls http_serve(), in which pages are written.
 */
#ifndef OPS_HTTP_H
#define OPS_HTTP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct http_page {
    const char *path; /* "/metrics" */
    const char *type; /* content-type */
    /* False: the page says what is wrong, and goes out as 503. `is_verbose`: ?verbose was asked. */
    bool (*write)(void *context, bool is_verbose, FILE *page);
};

struct http;

/**
 * Listens on `address` ("127.0.0.1:9400", "[::1]:9400", "0.0.0.0:9400"). `pages`, which a page
 * without a path ends, and `context` live as long. ERR_CONFIG: the address is none, is not ours or
 * is taken. ERR_NO_MEMORY.
 */
MUST_CHECK enum err http_listen(const char *address, const struct http_page *pages, void *context,
    struct http **ret, struct error *err);

/** Readable when http_serve() has something to do; -1 for NULL. */
int http_fd(const struct http *http);

/** Answers what has come, without waiting. Also to be called now and then: it ends what takes too
 * long. NULL is fine. */
void http_serve(struct http *http);

/** NULL is fine. */
void http_close(struct http *http);

#endif

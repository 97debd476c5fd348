/**
 * Pages over HTTP, for metrics and probes: GET and HEAD of a few paths. Each page is written anew
 * for each request. Bytes that come in, connections, and the time that each may be silent are
 * bounded; where there are too many connections, a new one closes the oldest. There is no TLS: the
 * address decides who can read. With a token (token.h) only requests that carry it are answered,
 * except for public pages.
 *
 * Lifetime: http_listen() to http_close(). Threads: one at a time. The
 * server has no thread: the caller waits for http_fd() and calls http_serve(), which writes pages.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct http_page {
    const char *path; /* "/metrics" */
    const char *type; /* content-type */
    bool is_public;   /* nobody needs a token for it */
    /* False: the page says what is wrong, and goes out as 503. `is_verbose`: ?verbose was asked. */
    bool (*write)(void *context, bool is_verbose, FILE *page);
};

struct http_options {
    const char *address;           /* "127.0.0.1:9400", "[::1]:9400", "0.0.0.0:9400" */
    const char *token_file;        /* "": nobody is asked who they are */
    const struct http_page *pages; /* a page without a path ends them */
    void *context;
};

struct http;

/**
 * Listens. What the options point to lives as long. ERR_CONFIG: the address cannot be read, is not
 * of this machine or is taken, or the token's file cannot be used. Where the file can no longer be
 * used later, requests are refused. ERR_NO_MEMORY.
 */
MUST_CHECK enum err http_listen(
    const struct http_options *options, struct http **ret, struct error *err);

/** Readable when http_serve() has something to do; -1 for NULL. */
int http_fd(const struct http *http);

/** Answers what has come, without waiting. Also to be called now and then: it ends what takes too
 * long. NULL is fine. */
void http_serve(struct http *http);

/** NULL is fine. */
void http_close(struct http *http);

#endif

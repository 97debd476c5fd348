/**
 * Serves pages over HTTP, for metrics and probes: GET and HEAD of a few paths. A page is written
 * for each request. Incoming bytes, connections and their idle time are bounded; when there are too
 * many connections, a new one closes the oldest. There is no TLS: the address decides who can read.
 * With a token (token.h), only requests that carry it are answered, except for public pages.
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
    bool is_public;   /* it needs no token */
    /*
     * Writes the page. False: it says what is wrong, and is sent with status 503. `is_verbose`: the
     * request had ?verbose.
     */
    bool (*write)(void *context, bool is_verbose, FILE *page);
};

struct http_options {
    const char *address;           /* "127.0.0.1:9400", "[::1]:9400", "0.0.0.0:9400" */
    const char *token_file;        /* "": no token is needed */
    const struct http_page *pages; /* ended by a page without a path */
    void *context;
    const char *policy; /* Content-Security-Policy of all answers; NULL: browsers load nothing */
};

struct http;

/**
 * Starts to listen. What the options point to must live until http_close(). Errors: ERR_CONFIG, if
 * the address is not valid, not one of this machine or in use, or the token's file cannot be used;
 * ERR_NO_MEMORY. If the file cannot be used later on, requests are refused.
 */
MUST_CHECK enum err http_listen(
    const struct http_options *options, struct http **ret, struct error *err);

/** Readable when http_serve() has something to do; -1 for NULL. */
int http_fd(const struct http *http);

/**
 * Answers pending requests, without waiting. Call it now and then in any case: it also closes
 * connections that take too long. NULL is fine.
 */
void http_serve(struct http *http);

/** NULL is fine. */
void http_close(struct http *http);

#endif

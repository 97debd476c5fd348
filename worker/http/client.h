/**
 * Requests to a service below one base URL, through libcurl. Certificates are verified. A GET
 * follows redirects only to the same scheme, host and port, at most three; other requests follow
 * none. Credentials in the URL appear in no error message; the rest of the URL only in ERR_IO.
 *
 * Threads: any; each request has a connection of its own while it lasts.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/error.h"
#include "base/slice.h"

struct http_client;

struct http_client_options {
    const char *url;     /* copied */
    const char *setting; /* its name, for errors; constant text */
    uint32_t timeout_ms; /* of a whole request; one that is redirected has it again */
};

/** Errors: ERR_CONFIG, if the URL cannot be used. */
MUST_CHECK enum err http_client_create(
    const struct http_client_options *options, struct http_client **ret, struct error *err);
void http_client_destroy(struct http_client *client); /* NULL is fine */

enum http_method { HTTP_GET, HTTP_PUT, HTTP_POST };

/** Takes the next piece of a body. Any code but ERR_OK ends the request with that code. */
typedef enum err http_take(void *context, struct slice piece, struct error *err);

struct http_request {
    enum http_method method;
    const char *path;  /* below the URL; "": the URL itself */
    struct slice body; /* of a PUT or POST; lives until the answer */
    const char *type;  /* header of the body: "content-type: ..."; NULL: none is named */
    uint64_t body_max; /* most bytes of the answer's body, if it is taken; of a GET below 2^63 */
    http_take *take;   /* of the answer's body; NULL: it is not read */
    void *context;     /* for `take` */
};

/** What a failed request was told. */
struct http_answer {
    long status;      /* 0: there was no answer */
    bool is_too_long; /* more than body_max */
};

/** ERR_OK: the status was 2xx. Errors: the code of `take`, ERR_NO_MEMORY, else ERR_IO. */
MUST_CHECK enum err http_client_send(struct http_client *client, const struct http_request *request,
    struct http_answer *ret, struct error *err);

#endif

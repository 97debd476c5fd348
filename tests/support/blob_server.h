/** A blob store behind HTTP on 127.0.0.1, kept in memory, that can misbehave. */
#ifndef TESTS_SUPPORT_BLOB_SERVER_H
#define TESTS_SUPPORT_BLOB_SERVER_H

#include "base/digest.h"

/* What it does to each GET (and the ones marked so, to each PUT). */
enum mishap {
    MISHAP_NONE,
    MISHAP_STATUS_500,       /* PUT too */
    MISHAP_WRONG_BYTES,      /* as many as asked for */
    MISHAP_TOO_LONG,         /* says so in Content-Length */
    MISHAP_ENDLESS,          /* no Content-Length, and no end */
    MISHAP_CUT,              /* the connection ends in the middle */
    MISHAP_DRIP,             /* a byte in a while, until the worker hangs up */
    MISHAP_STATUS_403,       /* PUT too */
    MISHAP_REDIRECT,         /* once, to where the blob is */
    MISHAP_REDIRECT_TO_FILE, /* PUT too: to one that this machine has */
    MISHAP_REDIRECT_FOR_EVER
};

struct blob_server;

struct blob_server *blob_server_start(void);
void blob_server_stop(struct blob_server *server);

/** "http://127.0.0.1:PORT/store/", with user and password "reader" and "hunter2" in it. */
const char *blob_server_url(const struct blob_server *server);

/** Copies the payload; returns its digest. */
struct digest blob_server_add(struct blob_server *server, struct slice payload);
bool blob_server_has(struct blob_server *server, struct slice payload);

void blob_server_set_mishap(struct blob_server *server, enum mishap mishap);

/** The mishap ends after so many requests. */
void blob_server_set_mishaps(struct blob_server *server, enum mishap mishap, unsigned count);

/** From now on each GET is sent to the same name below `url`. */
void blob_server_redirect(struct blob_server *server, const char *url);

/** Before it answers a GET it calls this, in a thread of its own. */
void blob_server_set_gate(struct blob_server *server, void (*gate)(void *context), void *context);

unsigned blob_server_gets(struct blob_server *server); /* so far */

/** True where every request so far had the credentials of the URL. */
bool blob_server_saw_credentials(struct blob_server *server);

#endif

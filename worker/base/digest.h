/**
 * SHA-256 digests, the names of immutable bytes: "sha256:" and 64 lower-case hex digits on the
 * wire. Threads: plain values.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/slice.h"

enum { DIGEST_TEXT_SIZE = 7 + 64 + 1 }; /* with the terminating NUL */

struct digest {
    uint8_t bytes[32];
};

struct digest digest_of(struct slice payload);

/**
 * The digest of bytes that arrive in pieces: digester_create(), digester_add() for each,
 * digester_finish().
 */
struct digester;

struct digester *digester_create(void); /* NULL when memory is short */
void digester_add(struct digester *digester, struct slice piece);
struct digest digester_finish(struct digester *digester); /* once, after the last piece */
void digester_destroy(struct digester *digester);         /* NULL is fine */

/** False, and `ret` untouched, unless `text` is "sha256:" and 64 lower-case hex digits. */
bool digest_parse(struct slice text, struct digest *ret);

/** Writes the text form, NUL-terminated, and returns it. */
const char *digest_format(const struct digest *digest, char text[static DIGEST_TEXT_SIZE]);

bool digest_equal(const struct digest *a, const struct digest *b);

/**
 * For hash tables. It is not simply a part of the digest, because a sender who tries many payloads
 * could choose those bits.
 */
uint64_t digest_hash(const struct digest *digest);

#endif

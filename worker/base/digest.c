#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"

struct digest digest_of(struct slice payload) {
    struct digest ret;
    SHA256(payload.data, payload.size, ret.bytes);
    return ret;
}

struct digester {
    EVP_MD_CTX *context;
    bool is_good;
};

struct digester *digester_create(void) {
    struct digester *digester = calloc(1, sizeof *digester);
    if (digester == NULL) return NULL;
    digester->context = EVP_MD_CTX_new();
    digester->is_good =
        digester->context != NULL && EVP_DigestInit_ex(digester->context, EVP_sha256(), NULL) == 1;
    if (digester->is_good) return digester;
    digester_destroy(digester);
    return NULL;
}

void digester_add(struct digester *digester, struct slice piece) {
    if (EVP_DigestUpdate(digester->context, piece.data, piece.size) != 1) digester->is_good = false;
}

/* The library can fail, in theory. The digest is then one that no payload has. */
struct digest digester_finish(struct digester *digester) {
    struct digest ret = {0};
    bool is_done = EVP_DigestFinal_ex(digester->context, ret.bytes, NULL) == 1;
    return is_done && digester->is_good ? ret : (struct digest){0};
}

void digester_destroy(struct digester *digester) {
    if (digester == NULL) return;
    EVP_MD_CTX_free(digester->context);
    free(digester);
}

/* Of each hex digit, its value and a bit that says that it is one. A table: the digits of a digest
 * are random, so branches on them would be mispredicted. */
enum { IS_DIGIT = 0x10 };
#define DIGIT(value) (IS_DIGIT | (value))
static const uint8_t digits[256] = {['0'] = DIGIT(0),
    ['1'] = DIGIT(1),
    ['2'] = DIGIT(2),
    ['3'] = DIGIT(3),
    ['4'] = DIGIT(4),
    ['5'] = DIGIT(5),
    ['6'] = DIGIT(6),
    ['7'] = DIGIT(7),
    ['8'] = DIGIT(8),
    ['9'] = DIGIT(9),
    ['a'] = DIGIT(10),
    ['b'] = DIGIT(11),
    ['c'] = DIGIT(12),
    ['d'] = DIGIT(13),
    ['e'] = DIGIT(14),
    ['f'] = DIGIT(15)};
#undef DIGIT

bool digest_parse(struct slice text, struct digest *ret) {
    struct slice prefix;
    if (!slice_take(&text, 7, &prefix) || !slice_is_text(prefix, "sha256:")) return false;
    struct digest digest;
    if (text.size != 2 * sizeof digest.bytes) return false;
    unsigned are_digits = IS_DIGIT;
    for (size_t i = 0; i < sizeof digest.bytes; i++) {
        unsigned high = digits[text.data[2 * i]], low = digits[text.data[2 * i + 1]];
        are_digits &= high & low;
        digest.bytes[i] = (uint8_t)(high << 4 | (low & 0xf));
    }
    if (are_digits == 0) return false;
    *ret = digest;
    return true;
}

const char *digest_format(const struct digest *digest, char text[static DIGEST_TEXT_SIZE]) {
    size_t used = (size_t)sprintf(text, "sha256:");
    for (size_t i = 0; i < sizeof digest->bytes; i++)
        used += (size_t)sprintf(text + used, "%02x", digest->bytes[i]);
    return text;
}

bool digest_equal(const struct digest *a, const struct digest *b) {
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

uint64_t digest_hash(const struct digest *digest) {
    return hash_more(HASH_START, slice_of(digest->bytes, sizeof digest->bytes));
}

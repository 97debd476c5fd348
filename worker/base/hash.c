#include "base/hash.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ROUNDS_EACH = 2, ROUNDS_LAST = 4, WORD_BYTES = 8 };

static uint64_t process_key[2];

/* Runs before main(), so that no look-up has to check whether the key was drawn. */
__attribute__((constructor)) static void draw_key(void) {
    if (getrandom(process_key, sizeof process_key, 0) != (ssize_t)sizeof process_key) abort();
}

static uint64_t rotate(uint64_t word, int bits) {
    return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[static 4], int rounds) {
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[static 4], uint64_t word) {
    v[3] ^= word;
    mix(v, ROUNDS_EACH);
    v[0] ^= word;
}

/* Little-endian, WORD_BYTES. */
static uint64_t word_of(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

/* A word of fewer bytes. */
static uint64_t word_of_rest(struct slice bytes) {
    uint64_t word = 0;
    for (size_t i = bytes.size; i > 0; i--) word = word << 8 | bytes.data[i - 1];
    return word;
}

uint64_t hash_with_key(const uint64_t key[static 2], struct slice bytes) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
        key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    struct slice rest = bytes, word;
    while (slice_take(&rest, WORD_BYTES, &word)) absorb(v, word_of(word.data));
    absorb(v, (uint64_t)bytes.size << 56 | word_of_rest(rest));
    v[2] ^= 0xff;
    mix(v, ROUNDS_LAST);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_more(uint64_t hash, struct slice bytes) {
    const uint64_t key[2] = {process_key[0] ^ hash, process_key[1]};
    return hash_with_key(key, bytes);
}

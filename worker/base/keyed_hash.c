#include "base/keyed_hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

__extension__ typedef unsigned __int128 uint128_t;

static uint64_t secrets[2];
static pthread_once_t secrets_drawn = PTHREAD_ONCE_INIT;

/* Where the kernel has no numbers, the time and an address are what a stranger knows least of. */
static void draw_secrets(void) {
    if (getrandom(secrets, sizeof secrets, 0) == (ssize_t)sizeof secrets) return;
    secrets[0] = clock_ns() * 0x9e3779b97f4a7c15u;
    secrets[1] = (uint64_t)(uintptr_t)&secrets * 0xbf58476d1ce4e5b9u;
}

static uint64_t fold(uint64_t a, uint64_t b) {
    uint128_t product = (uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t keyed_hash(uint64_t hash, struct slice bytes) {
    pthread_once(&secrets_drawn, draw_secrets);
    for (size_t at = 0; at < bytes.size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = bytes.size - at;
        memcpy(&word, bytes.data + at, left < sizeof word ? left : sizeof word);
        hash = fold(hash ^ word ^ secrets[0], secrets[1]);
    }
    return fold(hash ^ bytes.size ^ secrets[1], secrets[0]);
}

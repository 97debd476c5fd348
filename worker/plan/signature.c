#include "plan/signature.h"

#include <string.h>

/* FNV-1a (Fowler, Noll, Vo), over whole values instead of bytes. */
static uint64_t mix(uint64_t hash, uint64_t value) {
    return (hash ^ value) * 0x100000001b3u;
}

static uint64_t mix_image(uint64_t hash, const struct digest *image) {
    uint64_t value;
    memcpy(&value, image->bytes, sizeof value); /* a part of a digest is enough */
    return mix(hash, value);
}

static uint64_t mix_launch(uint64_t hash, const struct plan_launch *launch) {
    hash = mix(hash, (uint64_t)(uintptr_t)launch->entry);
    if (launch->image != NULL) hash = mix_image(hash, launch->image);
    for (int i = 0; i < 3; i++) {
        hash = mix(hash, launch->grid[i]);
        hash = mix(hash, launch->block[i]);
    }
    hash = mix(hash, launch->shared_bytes);
    hash = mix(hash, launch->iterations);
    return mix(hash, launch->cooperative);
}

/* Multiplying carries nothing downwards, and addresses of entries may differ in high bits alone:
 * each bit of the hash gets its part of all of them (the finalizer of MurmurHash3, by Appleby). */
static uint64_t spread(uint64_t hash) {
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

uint64_t plan_signature(const struct plan *plan) {
    uint64_t hash = mix(0xcbf29ce484222325u, plan->job->repeat);
    for (size_t i = 0; i < plan->launch_count; i++) hash = mix_launch(hash, &plan->launches[i]);
    hash = spread(hash);
    return hash != 0 ? hash : 1;
}

static bool same_image(const struct digest *a, const struct digest *b) {
    return a == NULL || b == NULL ? a == b : digest_equal(a, b);
}

static bool same_launch(const struct plan_launch *a, const struct plan_launch *b) {
    for (int i = 0; i < 3; i++)
        if (a->grid[i] != b->grid[i] || a->block[i] != b->block[i]) return false;
    return a->entry == b->entry && same_image(a->image, b->image) &&
           a->shared_bytes == b->shared_bytes && a->iterations == b->iterations &&
           a->cooperative == b->cooperative;
}

bool plan_same_signature(const struct plan *a, const struct plan *b) {
    if (a->signature != b->signature || a->launch_count != b->launch_count) return false;
    if (a->job->repeat != b->job->repeat) return false;
    for (size_t i = 0; i < a->launch_count; i++)
        if (!same_launch(&a->launches[i], &b->launches[i])) return false;
    return true;
}

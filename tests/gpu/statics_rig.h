/** Statics on a device of the CPU driver, with pools, leases and payloads to upload. */
#ifndef TESTS_GPU_STATICS_RIG_H
#define TESTS_GPU_STATICS_RIG_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cpu_device.h"
#include "gpu/event.h"
#include "gpu/statics.h"
#include "support/device_checks.h"

enum {
    RIG_POOL_BYTES = 256 << 20,
    RIG_STAGING_COUNT = 2,
    RIG_PAYLOAD_BYTES_MAX = 8 << 20,
    RIG_ENTRIES_MAX = 1000
};

struct rig {
    struct device device;
    struct budget device_budget, pinned_budget;
    struct pool *device_pool, *pinned_pool;
    struct pool_counters device_counters, pinned_counters; /* of the test's first thread */
    struct lease_pool *leases;
    struct statics *statics;
    struct stream_lease lane; /* uses what was uploaded */
    uint8_t *bytes;           /* of payloads, made and compared */
    struct error err;
};

static void must(enum err code, const struct error *err) {
    if (code != ERR_OK) fail_msg("%s", err->message);
}

/** Everything but the statics themselves. */
static void rig_prepare(struct rig *rig, const char *faults) {
    *rig = (struct rig){.bytes = malloc(RIG_PAYLOAD_BYTES_MAX)};
    assert_non_null(rig->bytes);
    cpu_device_open(&rig->device, faults);
    budget_init(&rig->device_budget, "device pool", ERR_DEVICE_MEMORY, RIG_POOL_BYTES);
    budget_init(&rig->pinned_budget, "pinned pool", ERR_NO_MEMORY, RIG_POOL_BYTES);
    must(pool_create(&rig->device, POOL_DEVICE, &rig->device_budget, &rig->device_pool, &rig->err),
        &rig->err);
    must(pool_create(&rig->device, POOL_PINNED, &rig->pinned_budget, &rig->pinned_pool, &rig->err),
        &rig->err);
    must(lease_pool_create(&rig->device, &rig->leases, &rig->err), &rig->err);
}

static struct statics_options rig_options(const struct rig *rig, uint64_t budget_bytes) {
    return (struct statics_options){.device = &rig->device,
        .leases = rig->leases,
        .device_pool = rig->device_pool,
        .pinned_pool = rig->pinned_pool,
        .budget_bytes = budget_bytes,
        .entries_max = RIG_ENTRIES_MAX,
        .staging_count = RIG_STAGING_COUNT};
}

static void rig_open(struct rig *rig, uint64_t budget_bytes) {
    rig_prepare(rig, NULL);
    const struct statics_options options = rig_options(rig, budget_bytes);
    must(statics_create(&options, &rig->statics, &rig->err), &rig->err);
    must(stream_lease_take(rig->leases, false, &rig->lane, &rig->err), &rig->err);
}

/** Everything goes back, and nobody made a mistake on the way. */
static void rig_close(struct rig *rig) {
    if (rig->lane.stream != NULL)
        must(stream_lease_release(rig->leases, &rig->lane, &rig->err), &rig->err);
    statics_destroy(rig->statics);
    lease_pool_destroy(rig->leases);
    pool_destroy(rig->pinned_pool, &rig->pinned_counters);
    pool_destroy(rig->device_pool, &rig->device_counters);
    assert_int_equal(budget_charged(&rig->device_budget), 0);
    assert_int_equal(budget_charged(&rig->pinned_budget), 0);
    device_assert_nothing_left();
    assert_int_equal(cpu_driver_counters().copies_pageable, 0);
    device_close(&rig->device);
    free(rig->bytes);
}

/** Payload `n`: `bytes` that no other number has, at `to`. */
static struct slice payload_fill(uint8_t *to, uint32_t n, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(n * 31 + i * 7 + (i >> 8));
    return slice_of(to, bytes);
}

static struct digest digest_of_number(uint32_t n) {
    return digest_of(slice_of(&n, sizeof n));
}

static enum err rig_upload(
    struct rig *rig, uint32_t n, size_t bytes, struct static_entry **ret, bool *ret_uploaded) {
    struct digest digest = digest_of_number(n);
    const struct payload payload = {.bytes = payload_fill(rig->bytes, n, bytes)};
    return statics_upload(rig->statics, &digest, &payload, ret, ret_uploaded, &rig->err);
}

static struct static_entry *rig_get(struct rig *rig, uint32_t n, size_t bytes) {
    struct static_entry *entry = NULL;
    bool uploaded;
    must(rig_upload(rig, n, bytes, &entry, &uploaded), &rig->err);
    return entry;
}

static struct static_entry *rig_find(struct rig *rig, uint32_t n) {
    struct digest digest = digest_of_number(n);
    return statics_find(rig->statics, &digest);
}

static bool rig_has(struct rig *rig, uint32_t n) {
    struct static_entry *entry = rig_find(rig, n);
    if (entry != NULL) statics_unref(rig->statics, entry);
    return entry != NULL;
}

/** Reads the entry back on `stream`, in order behind its upload, and compares, its pad too. */
static void check_bytes(
    struct rig *rig, struct static_entry *entry, uint32_t n, size_t bytes, CUstream stream) {
    struct error err;
    struct pinned_block down;
    size_t padded = (bytes + UPLOAD_ALIGNMENT - 1) / UPLOAD_ALIGNMENT * UPLOAD_ALIGNMENT;
    uint8_t *expected = calloc(padded, 1);
    assert_non_null(expected);
    must(pinned_block_alloc(&rig->device, padded, &down, &err), &err);
    must(static_entry_await(&rig->device, entry, stream, &err), &err);
    assert_int_equal(
        rig->device.driver->copy_to_host(down.data, static_entry_address(entry), padded, stream),
        CUDA_SUCCESS);
    must(stream_wait(&rig->device, stream, &err), &err);
    payload_fill(expected, n, bytes);
    assert_memory_equal(down.data, expected, padded);
    pinned_block_free(&rig->device, &down);
    free(expected);
}

#endif

#include "blobs/memory.h"

#include <errno.h>

#include "blobs/trouble.h"

static bool take(atomic_uint_fast64_t *held, uint64_t max, uint64_t more) {
    /* relaxed: see the header */
    uint64_t now = atomic_load_explicit(held, memory_order_relaxed);
    do {
        if (more > max || now > max - more) return false;
    } while (!atomic_compare_exchange_weak_explicit(
        held, &now, now + more, memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool blob_memory_take(struct blob_memory *memory, uint64_t bytes) {
    return take(&memory->held, memory->bytes_max, bytes);
}

void blob_memory_give(struct blob_memory *memory, uint64_t bytes) {
    atomic_fetch_sub_explicit(&memory->held, bytes, memory_order_relaxed); /* as above */
}

bool blob_memory_take_file(struct blob_memory *memory) {
    return take(&memory->files, BLOB_FILES_MAX, 1);
}

void blob_memory_give_file(struct blob_memory *memory) {
    atomic_fetch_sub_explicit(&memory->files, 1, memory_order_relaxed); /* as above */
}

bool blob_memory_is_held(const struct blob_memory *memory) {
    return atomic_load_explicit(&memory->held, memory_order_relaxed) > 0 || /* as above */
           atomic_load_explicit(&memory->files, memory_order_relaxed) > 0;
}

enum err blob_memory_note_disk(struct blob_memory *memory, enum err code, struct error *err) {
    if (code != ERR_IO) return code;
    bool is_full = err->native == ENOSPC;
    err->trouble = is_full ? BLOBS_DISK_FULL : BLOBS_TROUBLE;
    atomic_store_explicit(is_full ? &memory->is_full : &memory->is_in_trouble, true,
        memory_order_relaxed); /* as above */
    return code;
}

void blob_memory_note_written(struct blob_memory *memory) {
    atomic_store_explicit(&memory->is_full, false, memory_order_relaxed); /* as above */
}

const char *blob_memory_trouble(const struct blob_memory *memory) {
    if (atomic_load_explicit(&memory->is_full, memory_order_relaxed)) return BLOBS_DISK_FULL;
    return atomic_load_explicit(&memory->is_in_trouble, memory_order_relaxed) ? BLOBS_TROUBLE : "";
}

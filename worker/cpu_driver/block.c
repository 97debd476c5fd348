#include "cpu_driver/block.h"

#include <stdlib.h>
#include <string.h>

enum { GRANULE = 512, FRESH = 0xcb, GUARD = 0xfd, FREED = 0xdb };

static const size_t PINNED_BYTES_MAX = (size_t)1 << 40;
static const size_t QUARANTINE_BYTES_MAX = (size_t)64 << 20;

/* Sorted by address, so that a pointer finds its block. */
static struct {
    struct cpu_block **items;
    size_t count, capacity;
} live;

/* Oldest first. */
static struct {
    struct cpu_block *first, **end;
    size_t bytes;
} quarantine = {.end = &quarantine.first};

static size_t round_up(size_t bytes) {
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

/* The guard behind the data also covers what rounding added. */
static uint8_t *front_guard(const struct cpu_block *block) {
    return block->data - GRANULE;
}

static uint8_t *back_guard(const struct cpu_block *block) {
    return block->data + block->bytes;
}

static size_t back_guard_bytes(const struct cpu_block *block) {
    return round_up(block->bytes) + GRANULE - block->bytes;
}

static bool is_filled(const uint8_t *data, size_t bytes, uint8_t value) {
    return data[0] == value && memcmp(data, data + 1, bytes - 1) == 0;
}

/* Index of the first block that starts after the address. */
static size_t find_behind(const void *address) {
    size_t low = 0, high = live.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (live.items[middle]->data <= (const uint8_t *)address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool live_add(struct cpu_block *block) {
    if (live.count == live.capacity) {
        size_t capacity = live.capacity == 0 ? 64 : live.capacity * 2;
        struct cpu_block **grown = realloc(live.items, capacity * sizeof(struct cpu_block *));
        if (grown == NULL) return false;
        live.items = grown;
        live.capacity = capacity;
    }
    size_t at = find_behind(block->data);
    memmove(&live.items[at + 1], &live.items[at], (live.count - at) * sizeof(struct cpu_block *));
    live.items[at] = block;
    live.count++;
    return true;
}

static void live_remove(size_t at) {
    live.count--;
    memmove(&live.items[at], &live.items[at + 1], (live.count - at) * sizeof(struct cpu_block *));
}

static CUresult charge(enum cpu_block_kind kind, struct cpu_device *device, size_t bytes) {
    if (kind == CPU_BLOCK_REGISTERED) {
        cpu.counters.registered_bytes_live += bytes;
        return CUDA_SUCCESS;
    }
    if (kind == CPU_BLOCK_PINNED) {
        if (bytes > PINNED_BYTES_MAX - cpu.counters.pinned_bytes_live)
            return CUDA_ERROR_OUT_OF_MEMORY;
        cpu.counters.pinned_bytes_live += bytes;
        return CUDA_SUCCESS;
    }
    size_t left = cpu.memory_bytes - device->memory_used;
    if (bytes > left || round_up(bytes) > left) return CUDA_ERROR_OUT_OF_MEMORY;
    device->memory_used += round_up(bytes);
    cpu.counters.device_bytes_live += round_up(bytes);
    cpu.counters.allocations_live++;
    return CUDA_SUCCESS;
}

static void discharge(enum cpu_block_kind kind, struct cpu_device *device, size_t bytes) {
    if (kind == CPU_BLOCK_REGISTERED) {
        cpu.counters.registered_bytes_live -= bytes;
        return;
    }
    if (kind == CPU_BLOCK_PINNED) {
        cpu.counters.pinned_bytes_live -= bytes;
        return;
    }
    device->memory_used -= round_up(bytes);
    cpu.counters.device_bytes_live -= round_up(bytes);
    cpu.counters.allocations_live--;
}

static void block_destroy(struct cpu_block *block) {
    if (block == NULL) return;
    if (block->kind != CPU_BLOCK_REGISTERED) free(front_guard(block));
    free(block);
}

/* Runs without the lock, because it touches every page. */
static struct cpu_block *block_make(
    enum cpu_block_kind kind, struct cpu_device *device, size_t bytes) {
    struct cpu_block *block = calloc(1, sizeof *block);
    if (block == NULL) return NULL;
    uint8_t *memory = aligned_alloc(GRANULE, GRANULE + round_up(bytes) + GRANULE);
    if (memory == NULL) {
        free(block);
        return NULL;
    }
    block->kind = kind;
    block->device = device;
    block->data = memory + GRANULE;
    block->bytes = bytes;
    memset(front_guard(block), GUARD, GRANULE);
    memset(block->data, FRESH, bytes);
    memset(back_guard(block), GUARD, back_guard_bytes(block));
    return block;
}

CUresult cpu_block_create(
    enum cpu_block_kind kind, struct cpu_device *device, size_t bytes, void **ret) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = charge(kind, device, bytes);
    if (result != CUDA_SUCCESS) return result;

    pthread_mutex_unlock(&cpu.lock);
    struct cpu_block *block = block_make(kind, device, bytes);
    pthread_mutex_lock(&cpu.lock);

    if (block == NULL || !live_add(block)) {
        block_destroy(block);
        discharge(kind, device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret = block->data;
    return CUDA_SUCCESS;
}

static bool is_registered(const void *data, size_t bytes) {
    size_t behind = find_behind((const uint8_t *)data + bytes - 1);
    const struct cpu_block *block = behind == 0 ? NULL : live.items[behind - 1];
    return block != NULL && block->data + block->bytes > (const uint8_t *)data;
}

CUresult cpu_block_register(struct cpu_device *device, void *data, size_t bytes) {
    if (data == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_registered(data, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct cpu_block *block = calloc(1, sizeof *block);
    if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    block->kind = CPU_BLOCK_REGISTERED;
    block->device = device;
    block->data = data;
    block->bytes = bytes;
    if (!live_add(block)) {
        block_destroy(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return charge(block->kind, device, bytes);
}

void cpu_block_check_guards(struct cpu_block *block) {
    if (block->is_reported || block->kind == CPU_BLOCK_REGISTERED) return;
    if (is_filled(front_guard(block), GRANULE, GUARD) &&
        is_filled(back_guard(block), back_guard_bytes(block), GUARD))
        return;
    block->is_reported = true;
    cpu.counters.guards_broken++;
    cpu_device_lose(block->device, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void check_freed(struct cpu_block *block) {
    cpu_block_check_guards(block);
    if (block->is_reported || is_filled(block->data, block->bytes, FREED)) return;
    block->is_reported = true;
    cpu.counters.writes_after_free++;
}

static struct cpu_block *quarantine_take(struct cpu_block **at) {
    struct cpu_block *block = *at;
    *at = block->next;
    if (block->next == NULL) quarantine.end = at;
    quarantine.bytes -= block->bytes;
    return block;
}

/* Called when no operation names the block any more. */
static void retire(struct cpu_block *block) {
    cpu_block_check_guards(block);
    if (block->bytes > QUARANTINE_BYTES_MAX || block->kind == CPU_BLOCK_REGISTERED) {
        block_destroy(block);
        return;
    }
    memset(block->data, FREED, block->bytes);
    block->next = NULL;
    *quarantine.end = block;
    quarantine.end = &block->next;
    quarantine.bytes += block->bytes;
    while (quarantine.bytes > QUARANTINE_BYTES_MAX) {
        struct cpu_block *oldest = quarantine_take(&quarantine.first);
        check_freed(oldest);
        block_destroy(oldest);
    }
}

CUresult cpu_block_free(enum cpu_block_kind kind, struct cpu_device *device, const void *data) {
    size_t behind = find_behind(data);
    struct cpu_block *block = behind == 0 ? NULL : live.items[behind - 1];
    /* Pinned memory is portable: any context may free it. */
    if (block == NULL || block->data != data || block->kind != kind ||
        (kind == CPU_BLOCK_DEVICE && block->device != device))
        return CUDA_ERROR_INVALID_VALUE;
    live_remove(behind - 1);
    discharge(kind, block->device, block->bytes);
    block->is_freed = true;
    if (block->users == 0) retire(block);
    else cpu.counters.freed_in_use++;
    return CUDA_SUCCESS;
}

bool cpu_block_covers(const struct cpu_block *block, const void *address, size_t bytes) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)block->data;
    return offset <= block->bytes && bytes <= block->bytes - offset;
}

struct cpu_block *cpu_block_find(const void *address) {
    size_t behind = find_behind(address);
    if (behind == 0 || !cpu_block_covers(live.items[behind - 1], address, 1)) return NULL;
    return live.items[behind - 1];
}

bool cpu_block_is_mapped(const void *address) {
    const struct cpu_block *block = cpu_block_find(address);
    return block != NULL && block->kind != CPU_BLOCK_DEVICE;
}

bool cpu_block_was_freed(const void *address) {
    for (const struct cpu_block *block = quarantine.first; block != NULL; block = block->next)
        if (cpu_block_covers(block, address, 1)) return true;
    return false;
}

void cpu_block_unuse(struct cpu_block *block) {
    block->users--;
    if (block->is_freed && block->users == 0) retire(block);
}

void cpu_blocks_check(void) {
    for (size_t i = 0; i < live.count; i++) cpu_block_check_guards(live.items[i]);
    for (struct cpu_block *block = quarantine.first; block != NULL; block = block->next)
        check_freed(block);
}

void cpu_blocks_clear(const struct cpu_device *device) {
    for (size_t i = live.count; i-- > 0;) {
        struct cpu_block *block = live.items[i];
        if (block->device != device) continue;
        live_remove(i);
        discharge(block->kind, block->device, block->bytes);
        block_destroy(block);
    }
    for (struct cpu_block **at = &quarantine.first; *at != NULL;) {
        if ((*at)->device == device) block_destroy(quarantine_take(at));
        else at = &(*at)->next;
    }
    if (live.count == 0) {
        free(live.items);
        live.items = NULL;
        live.capacity = 0;
    }
}

#include "bench/free_lists.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/ring.h"

enum { LIST_BLOCKS_MAX = 1024 };

struct free_list {
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t mutex;
    size_t count, bytes;
    uint64_t blocks[LIST_BLOCKS_MAX]; /* addresses */
};

struct free_lists {
    const struct device *device;
    enum pool_kind kind;
    size_t count;
    struct free_list lists[];
};

enum err free_lists_create(const struct device *device, enum pool_kind kind, const size_t *sizes,
    size_t count, struct free_lists **ret, struct error *err) {
    struct free_lists *lists =
        aligned_alloc(CACHE_LINE_BYTES, sizeof *lists + count * sizeof lists->lists[0]);
    if (lists == NULL) return error_no_memory(err, "no memory for the baseline");
    lists->device = device;
    lists->kind = kind;
    lists->count = count;
    for (size_t i = 0; i < count; i++) {
        lists->lists[i].count = 0;
        lists->lists[i].bytes = sizes[i];
        pthread_mutex_init(&lists->lists[i].mutex, NULL);
    }
    *ret = lists;
    return ERR_OK;
}

static enum err allocate(
    const struct free_lists *lists, size_t bytes, struct pool_block *ret, struct error *err) {
    if (lists->kind == POOL_DEVICE) {
        struct device_block device;
        enum err code = device_block_alloc(lists->device, bytes, &device, err);
        if (code == ERR_OK) *ret = (struct pool_block){device.address, bytes};
        return code;
    }
    struct pinned_block pinned;
    enum err code = pinned_block_alloc(lists->device, bytes, &pinned, err);
    if (code == ERR_OK) *ret = (struct pool_block){(uintptr_t)pinned.data, bytes};
    return code;
}

static void give_up(const struct free_lists *lists, const struct pool_block *block) {
    struct device_block device = {.address = block->address, .bytes = block->bytes};
    struct pinned_block pinned = pool_block_pinned(block);
    if (lists->kind == POOL_DEVICE) device_block_free(lists->device, &device);
    else pinned_block_free(lists->device, &pinned);
}

enum err free_lists_take(
    struct free_lists *lists, size_t index, struct pool_block *ret, struct error *err) {
    struct free_list *list = &lists->lists[index];
    *ret = (struct pool_block){.bytes = list->bytes};
    pthread_mutex_lock(&list->mutex);
    if (list->count > 0) ret->address = list->blocks[--list->count];
    pthread_mutex_unlock(&list->mutex);
    return ret->address != 0 ? ERR_OK : allocate(lists, list->bytes, ret, err);
}

void free_lists_return(struct free_lists *lists, size_t index, struct pool_block *block) {
    struct free_list *list = &lists->lists[index];
    struct pool_block returned = *block;
    *block = (struct pool_block){0};
    if (returned.address == 0) return;
    pthread_mutex_lock(&list->mutex);
    bool has_room = list->count < LIST_BLOCKS_MAX;
    if (has_room) list->blocks[list->count++] = returned.address;
    pthread_mutex_unlock(&list->mutex);
    if (!has_room) give_up(lists, &returned);
}

void free_lists_destroy(struct free_lists *lists) {
    if (lists == NULL) return;
    for (size_t i = 0; i < lists->count; i++) {
        struct free_list *list = &lists->lists[i];
        struct pool_block block = {.bytes = list->bytes};
        while (list->count > 0) {
            block.address = list->blocks[--list->count];
            give_up(lists, &block);
        }
        pthread_mutex_destroy(&list->mutex);
    }
    free(lists);
}

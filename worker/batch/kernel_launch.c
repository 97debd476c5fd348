#include "batch/kernel_launch.h"

#include <string.h>

#include "program/params.h"

enum { CELL_BYTES = 8, ARGUMENT_BYTES_MAX = 32764 /* of a launch, on any device */ };
_Static_assert((int)LAUNCHES_PARAMS >= (int)ENTRY_ARGS_MAX, "an empty list has room for a launch");
_Static_assert(LAUNCHES_CELLS >= ARGUMENT_BYTES_MAX / CELL_BYTES + ENTRY_ARGS_MAX,
    "an empty list has room for a launch");

enum err kernel_launch_enqueue(const struct device *device, CUstream stream,
    const struct kernel_launch *launch, struct batch_telemetry *telemetry, struct error *err) {
    const uint32_t *grid = launch->grid, *block = launch->block;
    enum err code = GPU_TRY(device->driver,
        launch(launch->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
            launch->shared_bytes, stream, launch->params, NULL),
        err);
    if (code != ERR_OK) return code;
    telemetry->launches++;
    telemetry->coalesced_launches += launch->is_batched;
    return ERR_OK;
}

static size_t param_count_of(const struct kernel_launch *launch) {
    return launch->is_batched ? (size_t)BATCHED_PARAMS : launch->entry->arg_count;
}

static size_t param_bytes_of(const struct kernel_launch *launch, size_t index) {
    return (launch->is_batched ? batched_param(index) : entry_param(launch->entry, index)).bytes;
}

/* FNV-1a (Fowler, Noll, Vo), over whole values instead of bytes. */
static uint64_t mix(uint64_t hash, uint64_t value) {
    return (hash ^ value) * 0x100000001b3u;
}

void launch_list_clear(struct launch_list *list) {
    list->count = list->param_count = list->cell_count = 0;
    list->signature = 0xcbf29ce484222325u;
}

bool launch_list_add(struct launch_list *list, const struct kernel_launch *launch) {
    size_t params = param_count_of(launch), cell = list->cell_count;
    if (list->count == LAUNCHES_MAX || params > LAUNCHES_PARAMS - list->param_count) return false;
    void **copies = &list->params[list->param_count];
    for (size_t i = 0; i < params; i++) {
        size_t bytes = param_bytes_of(launch, i), cells = (bytes + CELL_BYTES - 1) / CELL_BYTES;
        if (cells > LAUNCHES_CELLS - cell) return false;
        copies[i] = &list->cells[cell];
        if (cells > 0) list->cells[cell + cells - 1] = 0; /* what fills it up is compared, too */
        memcpy(copies[i], launch->params[i], bytes);
        cell += cells;
    }
    list->items[list->count].launch = *launch;
    list->items[list->count].launch.params = copies;
    list->items[list->count].first_cell = list->cell_count;
    list->items[list->count].cell_count = cell - list->cell_count;
    list->count++;
    list->param_count += params;
    list->cell_count = cell;
    list->signature = mix(list->signature, (uintptr_t)launch->function);
    list->signature = mix(list->signature, (uintptr_t)launch->entry);
    return true;
}

static bool same_kernel(const struct kernel_launch *a, const struct kernel_launch *b) {
    return a->function == b->function && a->entry == b->entry && a->is_batched == b->is_batched;
}

bool launch_list_same_kernels(const struct launch_list *a, const struct launch_list *b) {
    bool is_same = a->count == b->count;
    for (size_t i = 0; i < a->count && is_same; i++)
        is_same = same_kernel(&a->items[i].launch, &b->items[i].launch);
    return is_same;
}

bool launch_list_same_at(const struct launch_list *a, const struct launch_list *b, size_t index) {
    const struct kernel_launch *one = &a->items[index].launch, *other = &b->items[index].launch;
    return memcmp(one->grid, other->grid, sizeof one->grid) == 0 &&
           memcmp(one->block, other->block, sizeof one->block) == 0 &&
           one->shared_bytes == other->shared_bytes &&
           memcmp(&a->cells[a->items[index].first_cell], &b->cells[b->items[index].first_cell],
               a->items[index].cell_count * CELL_BYTES) == 0;
}

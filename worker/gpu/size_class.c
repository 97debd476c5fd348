#include "gpu/size_class.h"

#include "base/invariant.h"

enum {
    SMALL_LOG = 8,                     /* the first class: 256 bytes */
    FINE_LOG = 20,                     /* from 1 MiB on, a doubling has STEPS classes */
    LARGE_LOG = 40,                    /* the last class: 1 TiB */
    FINE_INDEX = FINE_LOG - SMALL_LOG, /* of the class of 1 MiB */
    STEPS_LOG = 2,
    STEPS = 1 << STEPS_LOG
};
_Static_assert(SIZE_CLASS_COUNT == FINE_INDEX + (LARGE_LOG - FINE_LOG) * STEPS + 1, "counted once");

static size_t floor_log2(size_t number) {
    return 63 - (size_t)__builtin_clzl(number);
}

enum err size_class_find(size_t bytes, size_t *ret_index, struct error *err) {
    INVARIANT(bytes > 0, "a block has bytes");
    if (bytes > (size_t)1 << LARGE_LOG)
        return error_set(err, ERR_TOO_LARGE, 0, "split the job into smaller ones",
            "a block of %zu bytes is larger than the largest size class, %zu bytes", bytes,
            (size_t)1 << LARGE_LOG);
    /* The class after the one that bytes - 1 has reached. The first class is reached by none; all
     * of its sizes count as its own, without a branch that small blocks of many sizes mispredict.
     */
    size_t reached = (bytes - 1) | (((size_t)1 << SMALL_LOG) - 1);
    size_t doubling = floor_log2(reached);
    if (doubling < FINE_LOG) {
        *ret_index = doubling - (SMALL_LOG - 1);
    } else {
        size_t step = reached >> (doubling - STEPS_LOG) & (STEPS - 1);
        *ret_index = FINE_INDEX + (doubling - FINE_LOG) * STEPS + step + 1;
    }
    return ERR_OK;
}

size_t size_class_bytes(size_t index) {
    INVARIANT(index < SIZE_CLASS_COUNT, "a size class is in the table");
    if (index < FINE_INDEX) return (size_t)1 << (SMALL_LOG + index);
    size_t doubling = FINE_LOG + (index - FINE_INDEX) / STEPS, step = (index - FINE_INDEX) % STEPS;
    return (STEPS + step) << (doubling - STEPS_LOG);
}

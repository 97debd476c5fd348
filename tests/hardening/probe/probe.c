/** A program that reads what was never given to it: whatever stands at the addresses that it is
 * told. */
#include "kernel.h"

/* A range of `bytes` at `address`, in multiples of 8. */
struct place {
    uint64_t address, bytes;
};

/* found[k] counts the words in places[k] that are ~inverted: the word that is looked for stands
 * nowhere but where somebody else left it. */
KERNEL(
    search, (uint32_t *)found, (const struct place *)places, (uint32_t)count, (uint64_t)inverted) {
    uint64_t threads = (uint64_t)grid_dim_x() * block_dim_x();
    for (uint32_t k = 0; k < count; k++) {
        const volatile uint64_t *words = (const volatile uint64_t *)places[k].address;
        for (uint64_t i = global_x(); i < places[k].bytes / 8; i += threads)
            if (~words[i] == inverted) (void)atomic_add_u32(&found[k], 1);
    }
}

/* Looks from its own buffer on, without knowing where anything is. */
DEVICE void search_from(
    uint32_t *found, const volatile uint64_t *from, uint64_t bytes, uint64_t inverted) {
    uint64_t threads = (uint64_t)grid_dim_x() * block_dim_x();
    for (uint64_t i = global_x(); i < bytes / 8; i += threads)
        if (~from[i] == inverted) (void)atomic_add_u32(found, 1);
}

KERNEL(search_on, (uint32_t *)found, (const uint64_t *)from, (uint64_t)bytes, (uint64_t)inverted) {
    search_from(found, from, bytes, inverted);
}

KERNEL(search_on_streamed, (uint32_t *)found, (const uint64_t *)from, (uint64_t)bytes,
    (uint64_t)inverted) {
    search_from(found, from, bytes, inverted);
}

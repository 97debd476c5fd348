/** What a tenant does with its secrets: reads them, computes with them, gives them back. */
#include "kernel.h"

DEVICE void copy_words(const uint64_t *from, uint64_t *to, uint64_t word, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) to[i] = from[i] != 0 ? from[i] : word;
}

KERNEL(keep, (const uint64_t *)from, (uint64_t *)to, (uint64_t)word, (uint32_t)n) {
    copy_words(from, to, word, n);
}

KERNEL(keep_streamed, (const uint64_t *)from, (uint64_t *)to, (uint64_t)word, (uint32_t)n) {
    copy_words(from, to, word, n);
}

KERNEL(keep_static, (const uint64_t *)from, (uint64_t *)to, (uint64_t)word, (uint32_t)n) {
    copy_words(from, to, word, n);
}

struct keep_row {
    ROW_FIELD const uint64_t *from;
    ROW_FIELD uint64_t *to;
    ROW_FIELD uint64_t word;
    ROW_FIELD uint32_t n;
};

KERNEL(keep_batched, (const struct keep_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct keep_row *row = &rows[block_y()];
    copy_words(row->from, row->to, row->word, row->n);
}

#include "gpu/pinned.h"

enum err pinned_write(
    const struct pinned_block *block, size_t offset, struct slice from, struct error *err) {
    if (offset > block->bytes || from.size > block->bytes - offset)
        return error_set(err, ERR_INTERNAL, 0, "report this as a bug of the worker",
            "an upload of %zu bytes at offset %zu is not inside a pinned block of %zu bytes",
            from.size, offset, block->bytes);
    if (from.size > 0) memcpy(block->data + offset, from.data, from.size);
    return ERR_OK;
}

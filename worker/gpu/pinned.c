#include "gpu/pinned.h"

static enum err check_range(const struct pinned_block *block, const char *what, size_t offset,
    size_t bytes, struct error *err) {
    if (offset <= block->bytes && bytes <= block->bytes - offset) return ERR_OK;
    return error_set(err, ERR_INTERNAL, 0, "report this as a bug of the worker",
        "%s of %zu bytes at offset %zu is not inside a pinned block of %zu bytes", what, bytes,
        offset, block->bytes);
}

enum err pinned_write(
    const struct pinned_block *block, size_t offset, struct slice from, struct error *err) {
    enum err code = check_range(block, "an upload", offset, from.size, err);
    if (code == ERR_OK && from.size > 0) memcpy(block->data + offset, from.data, from.size);
    return code;
}

enum err pinned_read(
    const struct pinned_block *block, size_t offset, void *to, size_t bytes, struct error *err) {
    enum err code = check_range(block, "a readback", offset, bytes, err);
    if (code == ERR_OK && bytes > 0) memcpy(to, block->data + offset, bytes);
    return code;
}

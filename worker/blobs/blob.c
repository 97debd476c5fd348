#include "blobs/blob.h"

#include <string.h>
#include <sys/mman.h>

#include "base/invariant.h"
#include "blobs/memory.h"
#include "blobs/parts.h"

enum err blob_read(
    const struct blob *blob, uint64_t offset, void *to, size_t bytes, struct error *err) {
    if (blob->parts != NULL) return parts_read(blob->parts, offset, to, bytes, err);
    INVARIANT(offset <= blob->bytes.size && bytes <= blob->bytes.size - offset,
        "a part lies in its blob");
    if (bytes > 0) memcpy(to, blob->bytes.data + offset, bytes);
    return ERR_OK;
}

void blob_fini(struct blob *blob) {
    if (blob->mapping != NULL) {
        munmap(blob->mapping, blob->bytes.size);
        blob_memory_give(blob->memory, blob->bytes.size);
    }
    parts_close(blob->parts);
    *blob = (struct blob){0};
}

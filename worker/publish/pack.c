#include "publish/pack.h"

static int write_growing(void *context, const char *bytes, size_t size) {
    struct growing *growing = context;
    if (!growing->failed && msgpack_sbuffer_write(&growing->buffer, bytes, size) != 0)
        growing->failed = true;
    return growing->failed ? -1 : 0;
}

void growing_init(struct growing *growing, msgpack_packer *packer) {
    *growing = (struct growing){0};
    msgpack_packer_init(packer, growing, write_growing);
}

void pack_text(msgpack_packer *packer, const char *text) {
    size_t size = strlen(text);
    msgpack_pack_str(packer, size);
    msgpack_pack_str_body(packer, text, size);
}

void pack_slice(msgpack_packer *packer, struct slice text) {
    msgpack_pack_str(packer, text.size);
    msgpack_pack_str_body(packer, text.data, text.size);
}

void pack_uint(msgpack_packer *packer, const char *key, uint64_t value) {
    pack_text(packer, key);
    msgpack_pack_uint64(packer, value);
}

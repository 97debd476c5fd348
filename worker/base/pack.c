#include "base/pack.h"

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

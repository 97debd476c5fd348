/** Packs small parts of messages. Threads: pure functions. */
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include <msgpack.h>

#include "base/slice.h"

void pack_text(msgpack_packer *packer, const char *text);
void pack_slice(msgpack_packer *packer, struct slice text);
void pack_uint(msgpack_packer *packer, const char *key, uint64_t value);

#endif

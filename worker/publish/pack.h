/** Small parts of messages, packed. Private to publish/. Threads: pure. */
#ifndef PUBLISH_PACK_H
#define PUBLISH_PACK_H

#include <msgpack.h>

#include "base/slice.h"

/** msgpack-c's growing buffer; a failed growth shows in the packer's return values alone, so it is
 * kept here: looked at once, at the end. */
struct growing {
    msgpack_sbuffer buffer; /* its data is to be freed */
    bool failed;
};

void growing_init(struct growing *growing, msgpack_packer *packer);

void pack_text(msgpack_packer *packer, const char *text);
void pack_slice(msgpack_packer *packer, struct slice text);
void pack_uint(msgpack_packer *packer, const char *key, uint64_t value);

#endif

/** A payload of the blob store, in memory of this process. Units: bytes. Threads: one at a time. */
#ifndef BLOBS_BLOB_H
#define BLOBS_BLOB_H

#include "base/slice.h"

struct blob_memory;

/** A payload, in anonymous memory of this process. */
struct blob {
    struct slice bytes;
    void *mapping;              /* what blob_fini() unmaps; NULL: there is none */
    struct blob_memory *memory; /* private: the account that it counts against */
};

void blob_fini(struct blob *blob); /* a zeroed one is fine */

#endif

/** Tensor element types, by their names in messages. Threads: pure. */
#ifndef JOB_DATATYPE_H
#define JOB_DATATYPE_H

#include "base/slice.h"

/** Named as in the Open Inference Protocol. X(symbol, bytes) */
#define DATATYPE_LIST(X)                                                                           \
    X(BOOL, 1)                                                                                     \
    X(UINT8, 1)                                                                                    \
    X(UINT16, 2)                                                                                   \
    X(UINT32, 4)                                                                                   \
    X(UINT64, 8)                                                                                   \
    X(INT8, 1)                                                                                     \
    X(INT16, 2)                                                                                    \
    X(INT32, 4)                                                                                    \
    X(INT64, 8)                                                                                    \
    X(FP16, 2)                                                                                     \
    X(BF16, 2)                                                                                     \
    X(FP32, 4)                                                                                     \
    X(FP64, 8)

enum datatype {
    DATATYPE_NONE, /* not given */
#define X(symbol, bytes) DATATYPE_##symbol,
    DATATYPE_LIST(X)
#undef X
};

/** DATATYPE_NONE if there is none of that name. */
enum datatype datatype_find(struct slice name);
const char *datatype_name(enum datatype type);
size_t datatype_bytes(enum datatype type);

#endif

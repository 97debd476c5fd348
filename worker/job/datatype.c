#include "job/datatype.h"

#include "base/invariant.h"

static const struct {
    const char *name;
    size_t bytes;
} datatypes[] = {[DATATYPE_NONE] = {"", 0},
#define X(symbol, bytes) [DATATYPE_##symbol] = {#symbol, bytes},
    DATATYPE_LIST(X)
#undef X
};

enum { DATATYPE_COUNT = sizeof datatypes / sizeof *datatypes };

enum datatype datatype_find(struct slice name) {
    for (int i = DATATYPE_NONE + 1; i < DATATYPE_COUNT; i++)
        if (slice_is_text(name, datatypes[i].name)) return (enum datatype)i;
    return DATATYPE_NONE;
}

const char *datatype_name(enum datatype type) {
    INVARIANT((size_t)type < DATATYPE_COUNT, "a datatype is one of the table");
    return datatypes[type].name;
}

size_t datatype_bytes(enum datatype type) {
    INVARIANT((size_t)type < DATATYPE_COUNT, "a datatype is one of the table");
    return datatypes[type].bytes;
}

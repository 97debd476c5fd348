#include "job/datatype.h"

#include "base/invariant.h"

static const struct {
    struct slice name; /* followed by a NUL */
    size_t bytes;
} datatypes[] = {[DATATYPE_NONE] = {{(const uint8_t *)"", 0}, 0},
#define X(symbol, bytes)                                                                           \
    [DATATYPE_##symbol] = {{(const uint8_t *)#symbol, sizeof #symbol - 1}, bytes},
    DATATYPE_LIST(X)
#undef X
};

enum { DATATYPE_COUNT = sizeof datatypes / sizeof *datatypes };

enum datatype datatype_find(struct slice name) {
    for (int i = DATATYPE_NONE + 1; i < DATATYPE_COUNT; i++)
        if (slice_equal(name, datatypes[i].name)) return (enum datatype)i;
    return DATATYPE_NONE;
}

const char *datatype_name(enum datatype type) {
    INVARIANT((size_t)type < DATATYPE_COUNT, "a datatype is one of the table");
    return (const char *)datatypes[type].name.data;
}

size_t datatype_bytes(enum datatype type) {
    INVARIANT((size_t)type < DATATYPE_COUNT, "a datatype is one of the table");
    return datatypes[type].bytes;
}

/* Any bytes as an image: as PTX, whose entries lie in the text, and as a shared object. */
#include <string.h>

#include "fuzz.h"
#include "program/ptx.h"
#include "program/shared_object.h"

static void read_ptx(struct slice text) {
    struct kernel_params params;
    struct slice name;
    struct ptx ptx;
    ptx_init(&ptx, text);
    while (ptx_next(&ptx, &name, &params) == PTX_ENTRY) {
        FUZZ_CHECK(name.size > 0 && name.data >= text.data &&
                   name.data + name.size <= text.data + text.size);
        for (size_t i = 0; i < params.count && i < ENTRY_ARGS_MAX; i++)
            FUZZ_CHECK(params.items[i].bytes <= 16u << 20);
    }
    FUZZ_CHECK(ptx.line <= text.size + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct kernel_params params;
    read_ptx(slice_of(data, size));
    if (shared_object_find(slice_of(data, size), "k", &params))
        FUZZ_CHECK(params.count <= ENTRY_ARGS_MAX);
    return 0;
}

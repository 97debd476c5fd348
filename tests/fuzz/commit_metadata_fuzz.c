/* Any text beside a committed offset: set aside, or read, and then written and read again. */
#include <string.h>

#include "broker/commit_metadata.h"
#include "fuzz.h"

enum { OFFSET = 4711 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct commit_metadata nothing;
    struct commit_metadata metadata, again;
    char text[COMMIT_METADATA_TEXT_SIZE];
    if (!commit_metadata_decode(slice_of(data, size), OFFSET, &metadata)) {
        FUZZ_CHECK(memcmp(&metadata, &nothing, sizeof nothing) == 0);
        return 0;
    }
    size_t length = commit_metadata_encode(&metadata, OFFSET, text);
    FUZZ_CHECK(length == strlen(text));
    FUZZ_CHECK(commit_metadata_decode(slice_of(text, length), OFFSET, &again));
    FUZZ_CHECK(again.is_open == metadata.is_open && again.takeovers == metadata.takeovers);
    FUZZ_CHECK(memcmp(again.finished, metadata.finished, sizeof again.finished) == 0);
    return 0;
}

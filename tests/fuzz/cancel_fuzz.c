/* Any message on the control topic: refused with a sentence, or an id that can be sent and read
 * again. */
#include "decode/cancel.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t bytes[CANCEL_BYTES_MAX];
    struct error err = {0};
    struct slice id = {0}, again = {0};
    enum err code = cancel_decode(slice_of(data, size), &id, &err);
    if (code != ERR_OK) {
        FUZZ_CHECK(err.code == code && err.message[0] != 0 && err.fix[0] != 0);
        return 0;
    }
    FUZZ_CHECK(size <= CANCEL_BYTES_MAX && id.size >= 1 && id.size <= 256);
    FUZZ_CHECK(id.data >= data && id.data + id.size <= data + size);
    FUZZ_CHECK(cancel_encode(id, bytes, &size, &err) == ERR_OK);
    FUZZ_CHECK(cancel_decode(slice_of(bytes, size), &again, &err) == ERR_OK);
    FUZZ_CHECK(slice_equal(id, again));
    return 0;
}

/* Any message on the control topic: refused with a sentence, or a message that can be sent and
 * read again. */
#include "decode/control_message.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t bytes[CONTROL_MESSAGE_BYTES_MAX];
    struct error err = {0};
    struct control_message message = {0}, again = {0};
    enum err code = control_message_decode(slice_of(data, size), &message, &err);
    if (code != ERR_OK) {
        FUZZ_CHECK(err.code == code && err.message[0] != 0 && err.fix[0] != 0);
        return 0;
    }
    FUZZ_CHECK(size <= CONTROL_MESSAGE_BYTES_MAX && message.id.size >= 1 && message.id.size <= 256);
    FUZZ_CHECK(message.id.data >= data && message.id.data + message.id.size <= data + size);
    FUZZ_CHECK(control_message_encode(&message, bytes, &size, &err) == ERR_OK);
    FUZZ_CHECK(control_message_decode(slice_of(bytes, size), &again, &err) == ERR_OK);
    FUZZ_CHECK(slice_equal(message.id, again.id) && message.action == again.action);
    return 0;
}

/**
 * What a sender asks of a job that it has sent, as it travels on the control topic
 * (schemas/control.schema.json): {v: 1, id, action}. Decoding is as strict as that of a job, and
 * bounded alike.
 * Threads: pure.
 */
#ifndef DECODE_CONTROL_MESSAGE_H
#define DECODE_CONTROL_MESSAGE_H

#include "base/error.h"
#include "base/slice.h"

enum { CONTROL_MESSAGE_BYTES_MAX = 512 };

/** The later one counts: a job that is to stop may be cancelled after all. */
enum control_action {
    CONTROL_NONE,
    CONTROL_STOP,  /* a long job that runs ends with what it has; any other is cancelled */
    CONTROL_CANCEL /* not run, or no further */
};

struct control_message {
    struct slice id;
    enum control_action action;
};

/** The id is inside `payload`. ERR_BAD_MESSAGE, ERR_NO_MEMORY. */
MUST_CHECK enum err control_message_decode(
    struct slice payload, struct control_message *ret, struct error *err);

/** The bytes in `ret`, and their size. ERR_BAD_MESSAGE where no job can have that id. */
MUST_CHECK enum err control_message_encode(const struct control_message *message,
    uint8_t ret[static CONTROL_MESSAGE_BYTES_MAX], size_t *size, struct error *err);

#endif

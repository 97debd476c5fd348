/**
 * A cancel, as it travels on the control topic (schemas/control.schema.json): {v: 1, id, action:
 * "cancel"}. Decoding is as strict as that of a job, and bounded alike.
 * Threads: pure.
 */
#ifndef DECODE_CANCEL_H
#define DECODE_CANCEL_H

#include "base/error.h"
#include "base/slice.h"

enum { CANCEL_BYTES_MAX = 512 };

/** The id of the job that is not to be run, inside `payload`. ERR_BAD_MESSAGE, ERR_NO_MEMORY. */
MUST_CHECK enum err cancel_decode(struct slice payload, struct slice *id, struct error *err);

/** The message in `ret`, and its size. ERR_BAD_MESSAGE where no job can have that id. */
MUST_CHECK enum err cancel_encode(
    struct slice id, uint8_t ret[static CANCEL_BYTES_MAX], size_t *size, struct error *err);

#endif

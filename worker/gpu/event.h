/**
 * What a stream and an event can do, checked: a null stream or event is ERR_INTERNAL before any
 * call of the driver. CUDA would take a null stream for the default stream, which is never used.
 *
 * Threads: any bound one.
 */
#ifndef GPU_EVENT_H
#define GPU_EVENT_H

#include "gpu/device.h"

MUST_CHECK enum err event_record(
    const struct device *device, CUevent event, CUstream stream, struct error *err);

/** Whether all that came before its last recording is done, without waiting. */
MUST_CHECK enum err event_poll(
    const struct device *device, CUevent event, bool *ret_is_done, struct error *err);

MUST_CHECK enum err event_wait(const struct device *device, CUevent event, struct error *err);

/** From `started` to `stopped`. ERR_DRIVER where that is not finite, negative, or beyond 2^63 ns.
 */
MUST_CHECK enum err event_elapsed_ns(const struct device *device, CUevent started, CUevent stopped,
    uint64_t *ret, struct error *err);

/** Lets `stream` go on only when `event` is done; the caller does not wait. */
MUST_CHECK enum err stream_wait_event(
    const struct device *device, CUstream stream, CUevent event, struct error *err);

/**
 * Waits until `stream` has done all that is on it, once more where the first wait fails. After an
 * error, which is a sticky one, nobody knows what still runs: its memory must not be used again.
 */
MUST_CHECK enum err stream_wait(const struct device *device, CUstream stream, struct error *err);

#endif

/**
 * Calls on streams and events, checked: a null stream or event is ERR_INTERNAL before the driver is
 * called. CUDA would take a null stream for the default stream, which the worker never uses.
 *
 * Threads: any bound one.
 */
#ifndef GPU_EVENT_H
#define GPU_EVENT_H

#include "gpu/device.h"

MUST_CHECK enum err event_record(
    const struct device *device, CUevent event, CUstream stream, struct error *err);

/** Whether all work before the event's last recording is done. Does not wait. */
MUST_CHECK enum err event_poll(
    const struct device *device, CUevent event, bool *ret_is_done, struct error *err);

MUST_CHECK enum err event_wait(const struct device *device, CUevent event, struct error *err);

/**
 * The time from `started` to `stopped`. Errors: ERR_DRIVER, if it is not finite, negative, or over
 * 2^63 ns.
 */
MUST_CHECK enum err event_elapsed_ns(const struct device *device, CUevent started, CUevent stopped,
    uint64_t *ret, struct error *err);

/** Makes later work on `stream` wait for `event`; the caller does not wait. */
MUST_CHECK enum err stream_wait_event(
    const struct device *device, CUstream stream, CUevent event, struct error *err);

/**
 * Waits until all work on `stream` is done, and tries again once if the wait fails. After an error,
 * which is a sticky one, work may still be running, so its memory must not be used again.
 */
MUST_CHECK enum err stream_wait(const struct device *device, CUstream stream, struct error *err);

#endif

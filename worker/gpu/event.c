#include "gpu/event.h"

static enum err check_handle(
    const void *handle, const char *what, const char *use, struct error *err) {
    if (handle != NULL) return ERR_OK;
    return error_set(err, ERR_INTERNAL, 0, "report this as a bug of the worker",
        "%s a null %s: was it given back already?", use, what);
}

enum err event_record(
    const struct device *device, CUevent event, CUstream stream, struct error *err) {
    enum err code = check_handle(event, "event", "recording", err);
    if (code == ERR_OK) code = check_handle(stream, "stream", "recording an event on", err);
    if (code != ERR_OK) return code;
    return GPU_TRY(device->driver, event_record(event, stream), err);
}

enum err event_poll(
    const struct device *device, CUevent event, bool *ret_is_done, struct error *err) {
    enum err code = check_handle(event, "event", "polling", err);
    if (code != ERR_OK) return code;
    CUresult result = device->driver->event_query(event);
    *ret_is_done = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_NOT_READY) return ERR_OK;
    return gpu_check(device->driver, result, "event_query(event)", err);
}

enum err event_wait(const struct device *device, CUevent event, struct error *err) {
    enum err code = check_handle(event, "event", "waiting for", err);
    if (code != ERR_OK) return code;
    return GPU_TRY(device->driver, event_synchronize(event), err);
}

enum err event_elapsed_ns(const struct device *device, CUevent started, CUevent stopped,
    uint64_t *ret, struct error *err) {
    enum err code = check_handle(started, "event", "measuring from", err);
    if (code == ERR_OK) code = check_handle(stopped, "event", "measuring to", err);
    if (code != ERR_OK) return code;
    float ms = 0;
    code = GPU_TRY(device->driver, event_elapsed(&ms, started, stopped), err);
    if (code != ERR_OK) return code;
    double ns = (double)ms * 1e6;
    if (!(ns >= 0 && ns < 0x1p63)) /* also refuses NaN */
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "the driver measured %g ms between two events", (double)ms);
    *ret = (uint64_t)ns;
    return ERR_OK;
}

enum err stream_wait_event(
    const struct device *device, CUstream stream, CUevent event, struct error *err) {
    enum err code = check_handle(stream, "stream", "making wait", err);
    if (code == ERR_OK) code = check_handle(event, "event", "making a stream wait for", err);
    if (code != ERR_OK) return code;
    return GPU_TRY(device->driver, stream_wait_event(stream, event, CU_EVENT_WAIT_DEFAULT), err);
}

enum err stream_wait(const struct device *device, CUstream stream, struct error *err) {
    enum err code = check_handle(stream, "stream", "waiting for", err);
    if (code != ERR_OK) return code;
    code = GPU_TRY(device->driver, stream_synchronize(stream), err);
    if (code == ERR_OK || err_is_sticky(code)) return code;
    code = GPU_TRY(device->driver, stream_synchronize(stream), err);
    if (code == ERR_OK || err_is_sticky(code)) return code;
    return err->code = ERR_GPU_FAULT;
}

/**
 * Which devices to work on: `devices` of the configuration, matched with what a short-lived child
 * (`gpu-worker devices`) says the driver shows.
 */
#ifndef SUPERVISE_PROBE_H
#define SUPERVISE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "settings/settings.h"

enum { PROBED_DEVICES_MAX = 64 };

struct probed_device {
    uint32_t index; /* the driver's number */
    char uuid[48];
    char fault[96]; /* why it should not be used; empty: no fault is known */
};

/**
 * Fills in the configured devices, in the configuration's order, at most `max`. No child is started
 * if `max` is 1 and the configuration gives the device's number (its UUID then stays empty).
 *
 * Errors: ERR_NO_DEVICE, if a named device is missing or the driver shows none. If the child has
 * failed, `*child_exit_code` is not 0, and the child has written why to standard error.
 */
MUST_CHECK enum err probe_devices(const struct settings *settings, const char *config,
    struct probed_device ret[static PROBED_DEVICES_MAX], size_t max, size_t *count,
    int *child_exit_code, struct error *err);

#endif

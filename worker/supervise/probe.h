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
    uint32_t index; /* as the driver counts */
    char uuid[48];
    char fault[96]; /* why it should not be used; empty: nothing is known */
};

/**
 * Fills in the configured devices, in the configuration's order, at most `max`. Without a child
 * where one device is wanted and its number is clear (its UUID stays empty).
 *
 * ERR_NO_DEVICE where one that is named is not there, or the driver shows none. Where the child has
 * failed, `*child_exit_code` is not 0, and the child has said why on standard error.
 */
MUST_CHECK enum err probe_devices(const struct settings *settings, const char *config,
    struct probed_device ret[static PROBED_DEVICES_MAX], size_t max, size_t *count,
    int *child_exit_code, struct error *err);

#endif

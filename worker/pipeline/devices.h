/**
 * Lists the devices of the configured driver, so that the caller can choose some. It opens the
 * driver, which a supervisor must not do: call it in a short-lived process.
 */
#ifndef PIPELINE_DEVICES_H
#define PIPELINE_DEVICES_H

#include "gpu/locality.h"
#include "settings/settings.h"

enum { DEVICES_MAX = 64 };

struct device_info {
    uint32_t index; /* as the driver counts */
    char uuid[48];
    char name[96];
    char pci[24];
    struct locality locality;
    char fault[96]; /* why it should not be used; empty: nothing is known against it */
};

struct gpu_driver;

/** Opens the configured driver. Once in a process. */
MUST_CHECK enum err devices_open_driver(
    const struct settings *settings, const struct gpu_driver **ret, struct error *err);

MUST_CHECK enum err devices_list(const struct settings *settings,
    struct device_info ret[static DEVICES_MAX], size_t *count, struct error *err);

#endif

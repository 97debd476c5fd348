/**
 * One GPU and the context that all threads of an executor share (the device's primary context).
 *
 * Lifetime: from device_open() to device_close(); destroy everything made on a device before that.
 * Threads: every thread that calls the driver binds itself first with device_bind().
 */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "gpu/driver.h"
#include "gpu/limits.h"

enum { GPU_UUID_SIZE = 48, GPU_PCI_SIZE = 24 };

struct device {
    const struct gpu_driver *driver;
    bool on_cpu; /* kernels run as `cpu` images */
    int index;
    CUdevice handle;
    CUcontext context;
    struct gpu_limits limits;
    char name[96];
    char uuid[GPU_UUID_SIZE]; /* as nvidia-smi prints it: GPU-0a1b... */
    char pci[GPU_PCI_SIZE];   /* its address, as sysfs writes it: 0000:1b:00.0; "": unknown */
};

/**
 * Fills in a device's properties without opening it: nothing is bound, and nothing has to be
 * closed.
 */
MUST_CHECK enum err device_identify(
    struct device *device, const struct gpu_driver *driver, int index, struct error *err);

/**
 * Opens device `index` of an open driver and binds the calling thread. Errors: ERR_NO_DEVICE, if
 * there is no such device.
 */
MUST_CHECK enum err device_open(
    struct device *device, const struct gpu_driver *driver, int index, struct error *err);
void device_close(struct device *device);

/** Makes the device's context current on the calling thread. */
MUST_CHECK enum err device_bind(const struct device *device, struct error *err);

#endif

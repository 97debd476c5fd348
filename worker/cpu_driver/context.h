/** Primary contexts, and which of them is current on a thread. */
#ifndef CPU_DRIVER_CONTEXT_H
#define CPU_DRIVER_CONTEXT_H

#include "cpu_driver/state.h"

/** The device with this number, or NULL. */
struct cpu_device *cpu_device_find(CUdevice ordinal);

CUresult cpu_context_retain(struct cpu_device *device, CUcontext *ret);

/** The last release waits for all work, then frees everything that belongs to the context. */
CUresult cpu_context_release(struct cpu_device *device);

/** NULL unbinds. */
CUresult cpu_context_set_current(CUcontext context);

/** The device whose context is current on this thread, or NULL. */
struct cpu_device *cpu_context_current(void);

/** Frees everything that belongs to the context; its streams have ended. */
void cpu_context_clear(struct cpu_device *device);

#endif

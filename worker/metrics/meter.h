/**
 * A thread that looks once a second how the device is used (gpu/usage.h). It is apart from all
 * others, because NVML waits for the driver: where that hangs, the figures end,
 * and nothing else does.
 *
 * Lifetime: meter_start() to meter_stop(). Threads: its own.
 */
#ifndef METRICS_METER_H
#define METRICS_METER_H

#include <stdbool.h>

#include "base/error.h"
#include "gpu/usage.h"

struct meter;

/** `uuid` is copied; as usage_open() has it. Errors: ERR_NO_MEMORY. */
MUST_CHECK enum err meter_start(const char *uuid, struct meter **ret, struct error *err);

/** The last reading; nothing is known if it is older than 10 s, or `meter` is NULL. Any thread. */
void meter_read(struct meter *meter, uint64_t now_ns, struct usage_reading *ret);

/**
 * Ends the thread. False: it hangs in NVML, and is left there after 2 s; then the
 * process has to end by _exit(), because exit() takes the library apart. NULL is fine.
 */
MUST_CHECK bool meter_stop(struct meter *meter);

#endif

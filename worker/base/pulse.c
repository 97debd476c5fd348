#include "base/pulse.h"

#include <stdio.h>

#include "base/clock.h"

static struct pulse *kept;
static _Atomic uint32_t taken;
static _Thread_local struct pulse *own;

void pulse_keep(struct pulse *pulses) {
    kept = pulses;
}

void pulse_start(const char *name) {
    if (kept == NULL) return;
    if (own == NULL) {
        /* relaxed: only uniqueness matters */
        uint32_t index = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
        if (index < PULSE_COUNT) own = &kept[index];
    }
    if (own != NULL) snprintf(own->name, sizeof own->name, "%s", name);
}

/* relaxed, both: a single time, which is believed only after several looks */
void pulse_busy(void) {
    if (own != NULL) atomic_store_explicit(&own->busy_ns, clock_ns(), memory_order_relaxed);
}

void pulse_idle(void) {
    if (own != NULL) atomic_store_explicit(&own->busy_ns, 0, memory_order_relaxed);
}

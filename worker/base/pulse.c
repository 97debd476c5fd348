#include "base/pulse.h"

#include <stdbool.h>
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

/* relaxed, both: each stands alone, and is believed only after several looks */
static void show(uint64_t busy_ns, bool is_outside) {
    if (own == NULL) return;
    atomic_store_explicit(&own->is_outside, is_outside, memory_order_relaxed);
    atomic_store_explicit(&own->busy_ns, busy_ns, memory_order_relaxed);
}

void pulse_busy(void) {
    if (own != NULL) show(clock_ns(), false);
}

void pulse_outside(void) {
    if (own != NULL) show(clock_ns(), true);
}

void pulse_idle(void) {
    show(0, false);
}

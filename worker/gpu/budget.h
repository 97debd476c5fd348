/**
 * An exact account of what the driver handed out, with a limit. It is touched only where the driver
 * is called: charged before an allocation, refunded after a free.
 *
 * Units: bytes. Lifetime: plain memory, no destructor. Threads: any; each step is one atomic step.
 * Errors: a step that is refused changes nothing. Books that would wrap are ERR_INTERNAL, with the
 * counter, its value and what was attempted.
 */
#ifndef GPU_BUDGET_H
#define GPU_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

struct budget {
    const char *name;   /* for messages: "device pool" */
    enum err full_code; /* what a charge past the limit answers */
    atomic_uint_fast64_t charged_bytes;
    atomic_uint_fast64_t limit_bytes;
};

void budget_init(struct budget *budget, const char *name, enum err full_code, uint64_t limit_bytes);

/** `full_code`, and nothing changed, where `bytes` more would pass the limit. */
MUST_CHECK enum err budget_charge(struct budget *budget, uint64_t bytes, struct error *err);

MUST_CHECK enum err budget_refund(struct budget *budget, uint64_t bytes, struct error *err);

/** May go below what is charged: nothing is taken back, but what is freed is not kept either. */
void budget_set_limit(struct budget *budget, uint64_t limit_bytes);
uint64_t budget_limit(const struct budget *budget);
uint64_t budget_charged(const struct budget *budget);

#endif

/**
 * An exact account of the memory that the driver handed out, with a limit. It changes only when the
 * driver is called: charged before an allocation, refunded after a free.
 *
 * Units: bytes. Lifetime: plain memory, no destructor. Threads: any; each step is one atomic step.
 * Errors: a refused step changes nothing. A counter that would overflow is ERR_INTERNAL, with its
 * name, its value and what was attempted.
 */
#ifndef GPU_BUDGET_H
#define GPU_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

struct budget {
    const char *name;   /* for messages: "device pool" */
    enum err full_code; /* the error of a charge past the limit */
    atomic_uint_fast64_t charged_bytes;
    atomic_uint_fast64_t limit_bytes;
};

void budget_init(struct budget *budget, const char *name, enum err full_code, uint64_t limit_bytes);

/** Charges `bytes`. `full_code`, and nothing is changed, if that would pass the limit. */
MUST_CHECK enum err budget_charge(struct budget *budget, uint64_t bytes, struct error *err);

MUST_CHECK enum err budget_refund(struct budget *budget, uint64_t bytes, struct error *err);

/**
 * The limit may be lower than what is charged: nothing is taken back, but freed memory is not
 * cached then.
 */
void budget_set_limit(struct budget *budget, uint64_t limit_bytes);
uint64_t budget_limit(const struct budget *budget);
uint64_t budget_charged(const struct budget *budget);

#endif

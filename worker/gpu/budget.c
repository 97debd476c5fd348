#include "gpu/budget.h"

#include <inttypes.h>

/* All orders are relaxed: each counter stands alone and publishes no other memory. The driver
 * itself orders its allocations and frees. */
static uint64_t load(const atomic_uint_fast64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void budget_init(
    struct budget *budget, const char *name, enum err full_code, uint64_t limit_bytes) {
    *budget = (struct budget){.name = name, .full_code = full_code};
    atomic_init(&budget->charged_bytes, 0);
    atomic_init(&budget->limit_bytes, limit_bytes);
}

static enum err refuse_wrap(const struct budget *budget, uint64_t charged, const char *attempt,
    uint64_t bytes, struct error *err) {
    return error_set(err, ERR_INTERNAL, 0, "report this as a bug of the worker",
        "%s: charged_bytes is %" PRIu64 ", and %s of %" PRIu64 " bytes would wrap it", budget->name,
        charged, attempt, bytes);
}

static enum err refuse_charge(const struct budget *budget, uint64_t charged, uint64_t limit,
    uint64_t bytes, struct error *err) {
    return error_set(err, budget->full_code, 0,
        "wait for memory in use, run fewer or smaller jobs at once, or raise the budget",
        "%s: %" PRIu64 " of %" PRIu64 " bytes are taken, and %" PRIu64 " more would pass the limit",
        budget->name, charged, limit, bytes);
}

enum err budget_charge(struct budget *budget, uint64_t bytes, struct error *err) {
    uint64_t charged = load(&budget->charged_bytes), limit;
    do {
        limit = load(&budget->limit_bytes);
        if (bytes > UINT64_MAX - charged)
            return refuse_wrap(budget, charged, "a charge", bytes, err);
        if (charged + bytes > limit) return refuse_charge(budget, charged, limit, bytes, err);
    } while (!atomic_compare_exchange_weak_explicit(&budget->charged_bytes, &charged,
        charged + bytes, memory_order_relaxed, memory_order_relaxed));
    return ERR_OK;
}

enum err budget_refund(struct budget *budget, uint64_t bytes, struct error *err) {
    uint64_t charged = load(&budget->charged_bytes);
    do {
        if (bytes > charged) return refuse_wrap(budget, charged, "a refund", bytes, err);
    } while (!atomic_compare_exchange_weak_explicit(&budget->charged_bytes, &charged,
        charged - bytes, memory_order_relaxed, memory_order_relaxed));
    return ERR_OK;
}

void budget_set_limit(struct budget *budget, uint64_t limit_bytes) {
    atomic_store_explicit(&budget->limit_bytes, limit_bytes, memory_order_relaxed);
}

uint64_t budget_limit(const struct budget *budget) {
    return load(&budget->limit_bytes);
}

uint64_t budget_charged(const struct budget *budget) {
    return load(&budget->charged_bytes);
}

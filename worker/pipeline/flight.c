#include "pipeline/flight.h"

#include "base/condition.h"

void flight_init(struct flight *flight, uint64_t job_bytes_max) {
    *flight = (struct flight){.job_bytes_max = job_bytes_max};
    pthread_mutex_init(&flight->lock, NULL);
    pthread_cond_init(&flight->changed, NULL);
}

void flight_fini(struct flight *flight) {
    pthread_cond_destroy(&flight->changed);
    pthread_mutex_destroy(&flight->lock);
}

void flight_lock(struct flight *flight) {
    pthread_mutex_lock(&flight->lock);
}

void flight_unlock(struct flight *flight) {
    pthread_mutex_unlock(&flight->lock);
}

void flight_wait(struct flight *flight, uint32_t timeout_ms) {
    flight->waiters++;
    (void)condition_wait_ms(&flight->changed, &flight->lock, timeout_ms);
    flight->waiters--;
}

/* With the lock. Without waiters, which is the rule, it costs nothing. */
static void wake(struct flight *flight) {
    if (flight->waiters > 0) pthread_cond_broadcast(&flight->changed);
}

/* ---- messages ---- */

uint64_t flight_expect(const struct flight *flight) {
    return flight->job_bytes != 0 ? flight->job_bytes : flight->job_bytes_max;
}

uint64_t flight_begin(struct flight *flight, uint64_t count, uint64_t bytes) {
    flight_lock(flight);
    uint64_t each = flight_expect(flight);
    flight->messages += count;
    flight->bytes += bytes + count * each;
    flight_unlock(flight);
    return each;
}

/* As much as the largest of these, or of those before them, which are forgotten after some ten
 * groups. */
static uint64_t learn(uint64_t seen, uint64_t largest) {
    return largest >= seen ? largest : seen - (seen - largest + 3) / 4;
}

void flight_decoded(struct flight *flight, uint64_t held, uint64_t reserved, uint64_t largest) {
    flight_lock(flight);
    flight->bytes += held - reserved;
    flight->job_bytes = learn(flight->job_bytes, largest);
    if (held < reserved) wake(flight);
    flight_unlock(flight);
}

void flight_end(struct flight *flight, uint64_t count, uint64_t bytes) {
    flight_lock(flight);
    flight->messages -= count;
    flight->bytes -= bytes;
    wake(flight);
    flight_unlock(flight);
}

uint64_t flight_messages(struct flight *flight) {
    flight_lock(flight);
    uint64_t messages = flight->messages;
    flight_unlock(flight);
    return messages;
}

void flight_set_bytes_max(struct flight *flight, uint64_t bytes_max) {
    flight_lock(flight);
    flight->bytes_max = bytes_max;
    wake(flight);
    flight_unlock(flight);
}

/* ---- memory of the pools ---- */

void flight_count_jobs(
    struct flight *flight, struct job *const *jobs, size_t count, enum job_count where) {
    uint64_t *const counts[] = {[COUNT_HOLDING] = &flight->holding,
        [COUNT_WAITING_FOR_MEMORY] = &flight->waiting_for_memory};
    bool has_fallen = false;
    flight_lock(flight);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->count != COUNT_NONE) {
            (*counts[jobs[i]->count])--;
            has_fallen = true;
        }
        if (where != COUNT_NONE) (*counts[where])++;
        jobs[i]->count = where;
    }
    if (has_fallen) wake(flight);
    flight_unlock(flight);
}

void flight_release(struct flight *flight, uint64_t count) {
    flight_lock(flight);
    flight->holding -= count;
    wake(flight);
    flight_unlock(flight);
}

void flight_begin_room(struct flight *flight) {
    flight_lock(flight);
    flight->rooms++;
    flight_unlock(flight);
}

void flight_end_room(struct flight *flight) {
    flight_lock(flight);
    flight->rooms--;
    wake(flight);
    flight_unlock(flight);
}

/* ---- the run ---- */

void flight_tally(struct flight *flight, uint64_t ok, uint64_t errors) {
    flight_lock(flight);
    flight->summary.ok += ok;
    flight->summary.errors += errors;
    flight_unlock(flight);
}

void flight_note_complete(struct flight *flight, bool is_complete) {
    flight_lock(flight);
    flight->summary.is_complete = is_complete;
    flight_unlock(flight);
}

bool flight_has_failed(const struct flight *flight) {
    /* relaxed: it only ends loops; `failure` is read after the threads were joined */
    return atomic_load_explicit(&flight->has_failed, memory_order_relaxed);
}

bool flight_fail(struct flight *flight, const struct error *err) {
    flight_lock(flight);
    bool is_first = !flight_has_failed(flight);
    if (is_first) flight->failure = *err;
    atomic_store_explicit(&flight->has_failed, true, memory_order_relaxed); /* as above */
    wake(flight);
    flight_unlock(flight);
    return is_first;
}

/* Why a life ended, and what it left. */
#include <stdio.h>

#include "base/text.h"
#include "state/layout.h"

/* Values of CUresult: uncorrectable errors. */
enum { CUDA_ECC = 214, CUDA_NVLINK = 220 };

bool state_is_fault_of_device(const struct state_death *death) {
    return death->kind == STATE_DEATH_STICKY &&
           (death->native == CUDA_ECC || death->native == CUDA_NVLINK);
}

void state_record_death(struct state *state, const struct state_death *death) {
    if (state == NULL) return;
    struct state_head *head = state->head;
    /* relaxed: this only decides which thread writes */
    if (atomic_exchange_explicit(&head->death_taken, 1, memory_order_relaxed) != 0) return;
    head->death = *death;
    /* release: pairs with the acquire in state_death() */
    atomic_store_explicit(&head->death_written, 1, memory_order_release);
}

void state_note_stop(struct state *state) {
    /* relaxed, both: it is read after this process has ended. Before the life has begun the head is
     * that of the life before, and this one has no messages that a death could count against. */
    if (state != NULL && atomic_load_explicit(&state->has_begun, memory_order_relaxed) != 0)
        atomic_store_explicit(&state->head->stop_asked, 1, memory_order_relaxed);
}

struct state_death state_death(const struct state *state) {
    struct state_death none = {.kind = STATE_DEATH_NONE};
    if (state == NULL) return none;
    /* relaxed: the writing process has ended */
    if (atomic_load_explicit(&state->head->stop_asked, memory_order_relaxed) == 1)
        none.kind = STATE_DEATH_STOP;
    /* acquire: pairs with the release in state_record_death() */
    if (atomic_load_explicit(&state->head->death_written, memory_order_acquire) != 1) return none;
    struct state_death death = state->head->death;
    death.message[STATE_MESSAGE_BYTES - 1] = 0;
    text_mend(death.message); /* the supervisor wrote it, or its writer died halfway */
    bool has_code = death.kind == STATE_DEATH_STICKY || death.kind == STATE_DEATH_HANG;
    if (death.kind > STATE_DEATH_OWN || (has_code && !err_is_sticky(death.code))) return none;
    return death;
}

/* False where the entry names nothing. */
static bool read_entry(
    const struct state *state, const struct state_entry *entry, struct state_left *ret) {
    ret->position = (struct position){.topic = state_topic(state, entry),
        .partition = entry->partition,
        .offset = entry->offset,
        .published_unix_ms = entry->published_unix_ms};
    ret->attempt = entry->attempt;
    return ret->position.topic != NULL && entry->offset >= 0 && entry->partition >= 0;
}

bool state_has_left(const struct state *state) {
    if (state == NULL) return false;
    size_t batch_count = (size_t)state->shape.lanes * state->shape.depth;
    /* acquire, both: as state_each_left() */
    for (size_t i = 0; i < STATE_THREADS_MAX; i++)
        if (atomic_load_explicit(&state->threads[i].is_set, memory_order_acquire) == 1) return true;
    for (size_t i = 0; i < batch_count; i++)
        if (atomic_load_explicit(&state->batches[i].job_count, memory_order_acquire) > 0)
            return true;
    for (size_t i = 0; i < state->suspect_count; i++)
        if (state->suspects[i].standing == STATE_DECODING_ALONE ||
            state->suspects[i].standing == STATE_ALONE)
            return true;
    return false;
}

static void visit_batch(const struct state *state, uint32_t lane, uint32_t slot,
    state_visit_left *visit, void *context) {
    size_t index = state_batch_index(state, lane, slot);
    const struct state_batch *batch = &state->batches[index];
    /* acquire: pairs with the release in state_launch() */
    uint32_t count = atomic_load_explicit(&batch->job_count, memory_order_acquire);
    if (count > state->shape.batch_jobs) count = state->shape.batch_jobs;
    struct state_left left = {.is_on_device = true,
        .lane = lane,
        .batch = atomic_load_explicit(&batch->id, memory_order_relaxed), /* by the count */
        .batch_jobs = count,
        .rounds = atomic_load_explicit(&batch->rounds, memory_order_relaxed)};
    for (size_t i = 0; i < count; i++)
        if (read_entry(state, &state->entries[index * state->shape.batch_jobs + i], &left))
            visit(context, &left);
}

void state_each_left(const struct state *state, state_visit_left *visit, void *context) {
    if (state == NULL) return;
    for (size_t i = 0; i < STATE_THREADS_MAX; i++) {
        struct state_left left = {.is_on_device = false};
        /* acquire: pairs with the release in state_enter() */
        bool is_set = atomic_load_explicit(&state->threads[i].is_set, memory_order_acquire) == 1;
        if (is_set && read_entry(state, &state->threads[i].entry, &left)) visit(context, &left);
    }
    for (uint32_t lane = 0; lane < state->shape.lanes; lane++)
        for (uint32_t slot = 0; slot < state->shape.depth; slot++)
            visit_batch(state, lane, slot, visit, context);
}

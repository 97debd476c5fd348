/* The hot path: notes what is in hand, with a few stores. */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "state/layout.h"

enum { ATTEMPT_MAX = UINT16_MAX };

/* ---- topics ---- */

static bool find_topic(
    const struct state *state, const char *topic, uint32_t count, uint16_t *ret) {
    for (uint32_t i = 0; i < count && i < STATE_TOPICS_MAX; i++)
        if (strncmp(state->topics[i], topic, STATE_TOPIC_BYTES - 1) == 0) {
            *ret = (uint16_t)i;
            return true;
        }
    return false;
}

static bool add_topic(struct state *state, const char *topic, uint16_t *ret) {
    pthread_mutex_lock(&state->topics_lock);
    /* relaxed: it changes only under the lock */
    uint32_t count = atomic_load_explicit(&state->head->topic_count, memory_order_relaxed);
    bool is_found = find_topic(state, topic, count, ret);
    if (!is_found && count < STATE_TOPICS_MAX) {
        strncpy(state->topics[count], topic, STATE_TOPIC_BYTES - 1);
        *ret = (uint16_t)count;
        is_found = true;
        /* release: pairs with the acquire in index_of() and in state_topic() */
        atomic_store_explicit(&state->head->topic_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&state->topics_lock);
    return is_found;
}

static bool index_of(struct state *state, const char *topic, uint16_t *ret) {
    /* acquire: pairs with the release in add_topic() */
    uint32_t count = atomic_load_explicit(&state->head->topic_count, memory_order_acquire);
    return find_topic(state, topic, count, ret) || add_topic(state, topic, ret);
}

const char *state_topic(const struct state *state, const struct state_entry *entry) {
    /* acquire: pairs with the release in add_topic() */
    uint32_t count = atomic_load_explicit(&state->head->topic_count, memory_order_acquire);
    if (entry->topic >= count || entry->topic >= STATE_TOPICS_MAX) return NULL;
    const char *name = state->topics[entry->topic];
    return memchr(name, 0, STATE_TOPIC_BYTES) != NULL ? name : NULL;
}

bool state_entry_of(struct state *state, const struct position *position, uint32_t attempt,
    struct state_entry *ret) {
    uint16_t topic;
    if (state == NULL || !index_of(state, position->topic, &topic)) return false;
    *ret = (struct state_entry){.offset = position->offset,
        .published_unix_ms = position->published_unix_ms,
        .partition = position->partition,
        .topic = topic,
        .attempt = (uint16_t)(attempt < ATTEMPT_MAX ? attempt : ATTEMPT_MAX)};
    return true;
}

/* ---- threads ---- */

/* The calling thread's slot; NULL: all slots are taken. */
static struct state_thread *own_thread(struct state *state) {
    static _Thread_local struct {
        uint64_t serial;
        uint32_t index;
    } own;
    if (own.serial != state->serial) {
        own.serial = state->serial;
        /* relaxed: only uniqueness matters */
        own.index = atomic_fetch_add_explicit(&state->thread_count, 1, memory_order_relaxed);
    }
    return own.index < STATE_THREADS_MAX ? &state->threads[own.index] : NULL;
}

void state_enter(struct state *state, const struct position *position, uint32_t attempt) {
    if (state == NULL) return;
    struct state_thread *thread = own_thread(state);
    if (thread == NULL || !state_entry_of(state, position, attempt, &thread->entry)) return;
    /*
     * release: pairs with the acquire in state_each_left(); a reader that sees it set sees the
     * entry
     */
    atomic_store_explicit(&thread->is_set, 1, memory_order_release);
}

void state_leave(struct state *state) {
    if (state == NULL) return;
    struct state_thread *thread = own_thread(state);
    /* release: nothing done before moves behind this store */
    if (thread != NULL) atomic_store_explicit(&thread->is_set, 0, memory_order_release);
}

/* ---- lanes ---- */

static bool is_slot(const struct state *state, uint32_t lane, uint32_t slot) {
    return state != NULL && lane < state->shape.lanes && slot < state->shape.depth;
}

void state_note_job(struct state *state, uint32_t lane, uint32_t slot, uint32_t index,
    const struct position *position, uint32_t attempt) {
    if (!is_slot(state, lane, slot) || index >= state->shape.batch_jobs) return;
    struct state_entry *entry =
        &state->entries[state_batch_index(state, lane, slot) * state->shape.batch_jobs + index];
    if (!state_entry_of(state, position, attempt, entry)) entry->topic = UINT16_MAX; /* none */
}

void state_note_rounds(struct state *state, uint32_t lane, uint32_t slot, uint64_t rounds) {
    if (!is_slot(state, lane, slot)) return;
    struct state_batch *batch = &state->batches[state_batch_index(state, lane, slot)];
    /* relaxed: published by the count */
    atomic_store_explicit(&batch->rounds, rounds, memory_order_relaxed);
}

void state_launch(struct state *state, uint32_t lane, uint32_t slot, uint32_t job_count,
    uint64_t id, uint64_t limit_ns) {
    if (!is_slot(state, lane, slot)) return;
    struct state_batch *batch = &state->batches[state_batch_index(state, lane, slot)];
    /* relaxed: published by the count */
    atomic_store_explicit(&batch->id, id, memory_order_relaxed);
    atomic_store_explicit(&batch->limit_ns, limit_ns, memory_order_relaxed);
    atomic_store_explicit(&batch->begun_ns, clock_ns(), memory_order_relaxed);
    /* release: pairs with the acquires in state_find_overdue() and state_each_left() */
    atomic_store_explicit(&batch->job_count, job_count, memory_order_release);
}

void state_fence(struct state *state, uint32_t lane, uint32_t slot) {
    if (!is_slot(state, lane, slot)) return;
    struct state_batch *batch = &state->batches[state_batch_index(state, lane, slot)];
    /* relaxed: published by the count */
    atomic_store_explicit(&state->lanes[lane].fence_ns, clock_ns(), memory_order_relaxed);
    /*
     * release: pairs with the acquire in state_find_overdue(); a reader that sees the next batch as
     * the oldest also sees when this one ended
     */
    atomic_store_explicit(&batch->job_count, 0, memory_order_release);
}

/* ---- sums ---- */

void state_heartbeat(struct state *state) {
    if (state == NULL) return;
    /* relaxed: a single time */
    atomic_store_explicit(&state->head->heartbeat_ns, clock_ns(), memory_order_relaxed);
}

void state_count(struct state *state, uint64_t ok, uint64_t errors) {
    if (state == NULL) return;
    /* relaxed: each sum stands alone */
    if (ok > 0) atomic_fetch_add_explicit(&state->head->ok, ok, memory_order_relaxed);
    if (errors > 0) atomic_fetch_add_explicit(&state->head->errors, errors, memory_order_relaxed);
}

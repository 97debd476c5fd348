/* What other processes can see while the executor runs. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "state/layout.h"

/* The lane's batch that the device runs, if any: the one launched first. */
static const struct state_batch *oldest_batch(const struct state *state, uint32_t lane) {
    const struct state_batch *oldest = NULL;
    uint64_t oldest_id = 0;
    for (uint32_t slot = 0; slot < state->shape.depth; slot++) {
        const struct state_batch *batch = &state->batches[state_batch_index(state, lane, slot)];
        /* acquire: pairs with the releases in state_launch() and state_fence() */
        if (atomic_load_explicit(&batch->job_count, memory_order_acquire) == 0) continue;
        uint64_t id = atomic_load_explicit(&batch->id, memory_order_relaxed); /* by the count */
        if (oldest != NULL && id >= oldest_id) continue;
        oldest = batch;
        oldest_id = id;
    }
    return oldest;
}

static uint64_t begun_ns(const struct state_batch *batch) {
    return atomic_load_explicit(&batch->begun_ns, memory_order_relaxed); /* by the count */
}

/* Whether another lane still has a batch on the device that was launched before this one. */
static bool is_behind(const struct state *state, uint32_t lane, const struct state_batch *batch) {
    for (uint32_t other = 0; other < state->shape.lanes; other++) {
        const struct state_batch *first = other != lane ? oldest_batch(state, other) : NULL;
        if (first != NULL && begun_ns(first) < begun_ns(batch)) return true;
    }
    return false;
}

static bool is_overdue(const struct state *state, uint32_t lane, uint64_t now_ns,
    struct state_waits *waits, struct state_overdue *ret) {
    const struct state_batch *batch = oldest_batch(state, lane);
    if (batch == NULL) return false;
    uint64_t id = atomic_load_explicit(&batch->id, memory_order_relaxed); /* by the count */
    bool has_waited = waits->lanes[lane].batch == id;
    if (is_behind(state, lane, batch)) {
        waits->lanes[lane].batch = id;
        waits->lanes[lane].until_ns = now_ns;
        return false;
    }
    /* relaxed: published by the count, which oldest_batch() has read */
    uint64_t limit_ns = atomic_load_explicit(&batch->limit_ns, memory_order_relaxed);
    uint64_t from_ns = begun_ns(batch);
    uint64_t fence_ns = atomic_load_explicit(&state->lanes[lane].fence_ns, memory_order_relaxed);
    if (fence_ns > from_ns) from_ns = fence_ns;
    if (has_waited && waits->lanes[lane].until_ns > from_ns) from_ns = waits->lanes[lane].until_ns;
    if (limit_ns == 0 || now_ns < from_ns || now_ns - from_ns <= limit_ns) return false;
    *ret = (struct state_overdue){
        .lane = lane, .batch = id, .limit_ns = limit_ns, .overdue_ns = now_ns - from_ns - limit_ns};
    return true;
}

uint32_t state_busy_lanes(const struct state *state) {
    uint32_t ret = 0;
    for (uint32_t lane = 0; state != NULL && lane < state->shape.lanes; lane++)
        ret += oldest_batch(state, lane) != NULL;
    return ret;
}

bool state_find_overdue(const struct state *state, uint64_t now_ns, struct state_waits *waits,
    struct state_overdue *ret) {
    if (state == NULL) return false;
    for (uint32_t lane = 0; lane < state->shape.lanes; lane++)
        if (is_overdue(state, lane, now_ns, waits, ret)) return true;
    return false;
}

/* Threads that hold no message, that wait for something outside the worker, or that stall only when
 * all threads do. */
static const char *const no_evidence[] = {
    "intake", "start", "fetch", "upload", "publisher", "reporter", "control", "reload"};

static bool is_no_evidence(const char *name) {
    for (size_t i = 0; i < sizeof no_evidence / sizeof no_evidence[0]; i++)
        if (strcmp(name, no_evidence[i]) == 0) return true;
    return false;
}

bool state_find_stall(
    const struct state *state, uint64_t now_ns, uint64_t limit_ns, struct state_stall *ret) {
    bool is_any = false;
    for (size_t i = 0; state != NULL && i < PULSE_COUNT; i++) {
        const struct pulse *pulse = &state->pulses[i];
        /* relaxed: a single time */
        uint64_t from_ns = atomic_load_explicit(&pulse->busy_ns, memory_order_relaxed);
        if (from_ns == 0 || now_ns < from_ns || now_ns - from_ns <= limit_ns) continue;
        if (is_any && strncmp(pulse->name, no_evidence[0], sizeof pulse->name) != 0) continue;
        is_any = true;
        ret->for_ns = now_ns - from_ns;
        snprintf(ret->name, sizeof ret->name, "%.*s", (int)sizeof pulse->name - 1, pulse->name);
        /* relaxed: as the time */
        bool is_outside = atomic_load_explicit(&pulse->is_outside, memory_order_relaxed) != 0;
        ret->is_evidence = !is_outside && !is_no_evidence(ret->name);
    }
    return is_any;
}

struct state_summary state_summary(const struct state *state) {
    struct state_summary ret = {0};
    if (state == NULL) return ret;
    struct state_head *head = state->head;
    /* acquire: pairs with the release in state_begin() */
    ret.life = atomic_load_explicit(&head->life, memory_order_acquire);
    ret.pid = atomic_load_explicit(&head->pid, memory_order_relaxed); /* by the life */
    ret.device = head->device;
    text_format(ret.uuid, sizeof ret.uuid, "%.*s", (int)sizeof head->uuid - 1, head->uuid);
    /* relaxed: each stands alone */
    ret.lives = atomic_load_explicit(&head->lives, memory_order_relaxed);
    ret.heartbeat_ns = atomic_load_explicit(&head->heartbeat_ns, memory_order_relaxed);
    ret.ok = atomic_load_explicit(&head->ok, memory_order_relaxed);
    ret.errors = atomic_load_explicit(&head->errors, memory_order_relaxed);
    /* acquire: pairs with the release in state_set_fault() */
    ret.is_unhealthy = atomic_load_explicit(&head->is_unhealthy, memory_order_acquire) == 1;
    if (ret.is_unhealthy)
        text_format(ret.fault, sizeof ret.fault, "%.*s", (int)sizeof head->fault - 1, head->fault);
    /*
     * acquire: pairs with the release in state_set_trouble(); a word that changes meanwhile may be
     * read in part; the next read is whole again
     */
    if (atomic_load_explicit(&head->is_troubled, memory_order_acquire) == 1)
        text_format(
            ret.trouble, sizeof ret.trouble, "%.*s", (int)sizeof head->trouble - 1, head->trouble);
    /* relaxed: each stands alone */
    ret.programs = atomic_load_explicit(&head->programs, memory_order_relaxed);
    ret.is_reload_refused =
        atomic_load_explicit(&head->is_reload_refused, memory_order_relaxed) == 1;
    /* acquire: pairs with the release in state_set_group() */
    uint32_t group = atomic_load_explicit(&head->group, memory_order_acquire);
    ret.group = group <= STATE_GROUP_AWAY ? (enum state_group)group : STATE_GROUP_UNKNOWN;
    ret.group_ns = atomic_load_explicit(&head->group_ns, memory_order_relaxed); /* by the group */
    return ret;
}

void state_set_programs(struct state *state, uint32_t count) {
    if (state == NULL) return;
    atomic_store_explicit(&state->head->programs, count, memory_order_relaxed); /* stands alone */
}

void state_set_reload(struct state *state, bool is_refused) {
    if (state == NULL) return;
    /* relaxed: stands alone */
    atomic_store_explicit(&state->head->is_reload_refused, is_refused, memory_order_relaxed);
}

void state_set_group(struct state *state, enum state_group group) {
    if (state == NULL) return;
    /* relaxed: published by the group */
    atomic_store_explicit(&state->head->group_ns, clock_ns(), memory_order_relaxed);
    /* release: pairs with the acquire in state_summary() */
    atomic_store_explicit(&state->head->group, group, memory_order_release);
}

void state_set_trouble(struct state *state, const char *trouble) {
    if (state == NULL) return;
    struct state_head *head = state->head;
    if (trouble[0] != 0) text_format(head->trouble, sizeof head->trouble, "%s", trouble);
    /* release: pairs with the acquire in state_summary() */
    atomic_store_explicit(&head->is_troubled, trouble[0] != 0, memory_order_release);
}

void state_set_fault(struct state *state, const char *fault) {
    if (state == NULL) return;
    text_format(state->head->fault, sizeof state->head->fault, "%s", fault);
    /* release: pairs with the acquire in state_summary() */
    atomic_store_explicit(&state->head->is_unhealthy, 1, memory_order_release);
}

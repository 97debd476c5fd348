#include "quarantine/fetches.h"

#include <string.h>

#include "state/tables.h"

/* relaxed, as everything in this file: a standing is one value, and other processes see the
 * previous one at worst */
static enum fetch_standing standing_of(const struct state_fetch *fetch) {
    return (enum fetch_standing)atomic_load_explicit(&fetch->standing, memory_order_relaxed);
}

static void set(struct state_fetch *fetch, enum fetch_standing standing) {
    atomic_store_explicit(&fetch->standing, (uint32_t)standing, memory_order_relaxed);
}

static bool is_of(const struct state *state, const struct state_fetch *fetch, const char *topic,
    int32_t partition) {
    if (standing_of(fetch) == FETCH_FREE || fetch->at.partition != partition) return false;
    const char *name = state_topic(state, &fetch->at);
    return name != NULL && strcmp(name, topic) == 0;
}

static struct state_fetch *find(const struct state *state, const char *topic, int32_t partition) {
    for (size_t i = 0; state != NULL && i < FETCHES_MAX; i++)
        if (is_of(state, &state_fetches(state)[i], topic, partition))
            return &state_fetches(state)[i];
    return NULL;
}

static struct state_fetch *find_free(struct state *state) {
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (standing_of(&state_fetches(state)[i]) == FETCH_FREE) return &state_fetches(state)[i];
    return NULL;
}

static void add_life(struct state_fetch *fetch) {
    if (fetch->lives < FETCHES_LIVES_MAX) fetch->lives++;
    set(fetch, fetch->lives < FETCHES_LIVES_MAX ? FETCH_LEFT : FETCH_SUSPECT);
}

static bool is_crash(enum state_death_kind kind) {
    return kind == STATE_DEATH_SIGNAL || kind == STATE_DEATH_OWN;
}

/* A kill from outside during a trial is no evidence. */
static bool is_evidence(const struct state_fetch *fetch, bool has_crashed) {
    return standing_of(fetch) == FETCH_ON_TRIAL && (has_crashed || fetch->has_inflated != 0);
}

static void add_trial(struct state_fetch *fetch, bool has_crashed) {
    if (fetch->deaths < FETCHES_DEATHS_MAX && is_evidence(fetch, has_crashed)) fetch->deaths++;
    set(fetch, fetch->deaths < FETCHES_DEATHS_MAX ? FETCH_SUSPECT : FETCH_ASIDE);
}

bool fetches_has_evidence(const struct state *state) {
    if (state == NULL) return false;
    bool has_crashed = is_crash(state_death(state).kind);
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (is_evidence(&state_fetches(state)[i], has_crashed)) return true;
    return false;
}

void fetches_judge(struct state *state) {
    if (state == NULL) return;
    enum state_death_kind kind = state_death(state).kind;
    bool has_crashed = is_crash(kind);
    bool has_cause = !has_crashed && kind != STATE_DEATH_NONE;
    /* A message's crash says nothing of where partitions are read. */
    bool is_of_message = kind == STATE_DEATH_SIGNAL && state_has_left(state);
    for (size_t i = 0; i < FETCHES_MAX; i++) {
        struct state_fetch *fetch = &state_fetches(state)[i];
        switch (standing_of(fetch)) {
        case FETCH_OPEN:
            if (has_cause) set(fetch, FETCH_FREE);
            else if (is_of_message) set(fetch, FETCH_LEFT);
            else add_life(fetch);
            break;
        case FETCH_ON_TRIAL: add_trial(fetch, has_crashed); break;
        case FETCH_LEFT:
        case FETCH_FREE:
        case FETCH_SUSPECT:
        case FETCH_ASIDE: break;
        }
    }
}

enum fetches_verdict fetches_ask(
    struct state *state, const char *topic, int32_t partition, int64_t offset) {
    const struct position position = {.topic = topic, .partition = partition, .offset = offset};
    struct state_fetch *fetch = find(state, topic, partition);
    struct state_entry at;
    if (state == NULL || offset < 0) return FETCHES_READ;
    if (fetch != NULL && fetch->at.offset == offset) {
        if (standing_of(fetch) == FETCH_ASIDE) return FETCHES_ASIDE;
        if (standing_of(fetch) == FETCH_SUSPECT) return FETCHES_TRY;
        set(fetch, FETCH_OPEN);
        return FETCHES_READ;
    }
    if (fetch == NULL) fetch = find_free(state);
    if (fetch == NULL || !state_entry_of(state, &position, 1, &at)) return FETCHES_READ;
    fetch->at = at;
    fetch->lives = 0;
    fetch->deaths = 0;
    set(fetch, FETCH_OPEN);
    return FETCHES_READ;
}

void fetches_move(struct state *state, const char *topic, int32_t partition, int64_t next) {
    struct state_fetch *fetch = find(state, topic, partition);
    if (fetch == NULL || standing_of(fetch) != FETCH_OPEN || fetch->at.offset == next) return;
    fetch->at.offset = next;
    fetch->lives = 0;
}

void fetches_try(struct state *state, const char *topic, int32_t partition) {
    struct state_fetch *fetch = find(state, topic, partition);
    if (fetch == NULL) return;
    fetch->has_inflated = 0;
    set(fetch, FETCH_ON_TRIAL);
}

void fetches_inflate(struct state *state, const char *topic, int32_t partition) {
    struct state_fetch *fetch = find(state, topic, partition);
    if (fetch != NULL) fetch->has_inflated = 1;
}

void fetches_pass(struct state *state, const char *topic, int32_t partition) {
    struct state_fetch *fetch = find(state, topic, partition);
    if (fetch == NULL) return;
    fetch->deaths = 0;
    set(fetch, FETCH_OPEN);
}

void fetches_each_aside(const struct state *state, fetches_visit *visit, void *context) {
    for (size_t i = 0; state != NULL && i < FETCHES_MAX; i++) {
        const struct state_fetch *fetch = &state_fetches(state)[i];
        const char *topic = state_topic(state, &fetch->at);
        if (standing_of(fetch) == FETCH_ASIDE && topic != NULL)
            visit(context, topic, fetch->at.partition, fetch->at.offset);
    }
}

static void count_one(void *context, const char *topic, int32_t partition, int64_t offset) {
    ++*(size_t *)context;
}

size_t fetches_count_aside(const struct state *state) {
    size_t count = 0;
    fetches_each_aside(state, count_one, &count);
    return count;
}

bool fetches_lift(struct state *state, const char *topic, int32_t partition) {
    struct state_fetch *fetch = find(state, topic, partition);
    bool was_aside = fetch != NULL && standing_of(fetch) == FETCH_ASIDE;
    if (was_aside) set(fetch, FETCH_FREE);
    return was_aside;
}

void fetches_lift_all(struct state *state) {
    for (size_t i = 0; state != NULL && i < FETCHES_MAX; i++)
        if (standing_of(&state_fetches(state)[i]) == FETCH_ASIDE)
            set(&state_fetches(state)[i], FETCH_FREE);
}

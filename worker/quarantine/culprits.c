#include "quarantine/culprits.h"

#include <string.h>

#include "base/text.h"

/* ---- what is known of an array ---- */

struct state_search *culprits_find(const struct state *state, const struct state_entry *entry) {
    struct state_search *searches = state_searches(state);
    for (size_t i = 0; searches != NULL && i < STATE_SEARCHES_MAX; i++)
        if (searches[i].use != STATE_SEARCH_FREE && state_same_message(&searches[i].at, entry))
            return &searches[i];
    return NULL;
}

/* If none is free, that of an array that is answered. */
static struct state_search *find_free(const struct state *state) {
    struct state_search *searches = state_searches(state), *answered = NULL;
    for (size_t i = 0; i < STATE_SEARCHES_MAX; i++) {
        if (searches[i].use == STATE_SEARCH_FREE) return &searches[i];
        if (searches[i].use == STATE_SEARCH_ANSWERED) answered = &searches[i];
    }
    return answered;
}

struct state_search *culprits_search(struct state *state, const struct position *position,
    uint32_t instances, uint32_t culprits_max) {
    struct state_entry entry;
    if (culprits_max == 0 || !state_entry_of(state, position, 0, &entry)) return NULL;
    if (culprits_max > STATE_CULPRITS_MAX) culprits_max = STATE_CULPRITS_MAX;
    struct state_search *search = culprits_find(state, &entry);
    bool is_known =
        search != NULL && search->instances == instances && search->culprit_count <= culprits_max;
    if (search == NULL) search = find_free(state);
    if (search == NULL) return NULL;
    if (!is_known) *search = (struct state_search){.at = entry, .instances = instances};
    search->culprits_max = culprits_max;
    search->running = (struct state_range){.count = 0};
    search->use = STATE_SEARCH_ACTIVE;
    return search;
}

void culprits_forget(const struct state *state, const struct state_entry *entry) {
    struct state_search *search = culprits_find(state, entry);
    if (search != NULL) search->use = STATE_SEARCH_FREE;
}

bool culprits_keep(const struct state *state, const struct state_entry *entry) {
    struct state_search *search = culprits_find(state, entry);
    bool is_kept = search != NULL && search->culprit_count > 0;
    if (is_kept) search->use = STATE_SEARCH_ANSWERED;
    return is_kept;
}

static uint32_t end_of(const struct state_range *range) {
    return range->first + range->count;
}

static void add_culprit(
    struct state_search *search, uint32_t instance, enum err code, const char *message) {
    struct state_culprit *culprit = &search->culprits[search->culprit_count++];
    culprit->instance = instance;
    culprit->code = code;
    text_format(culprit->message, sizeof culprit->message, "%s", message);
}

/* Whether the instance is among those that are suspected, or what is behind them. */
static bool is_suspected(const struct state_search *search, uint32_t instance) {
    return instance >= search->suspected.first && instance < search->suspected_end;
}

/* What is behind the culprit in the part that it was found in: culprits often stand together. */
static struct state_range behind(const struct state_search *search, uint32_t instance) {
    uint32_t first = instance + 1, end = end_of(&search->suspected);
    return (struct state_range){.first = first, .count = end > first ? end - first : 0};
}

bool culprits_blame(struct state_search *search, enum err code, const char *message) {
    struct state_range blamed = search->running;
    uint32_t known = search->culprit_count;
    search->running = (struct state_range){.count = 0};
    if (blamed.count == 0 || known >= search->culprits_max || known + 1 >= search->instances ||
        search->fruitless >= CULPRITS_FRUITLESS_MAX)
        return false;
    if (!is_suspected(search, blamed.first)) {
        search->suspected = blamed;
        search->suspected_end = end_of(&blamed);
    }
    if (blamed.count == 1) add_culprit(search, blamed.first, code, message);
    search->suspected = blamed.count == 1 ? behind(search, blamed.first) : blamed;
    search->is_narrowed = blamed.count > 1;
    return true;
}

/* ---- a life's walk over the instances ---- */

struct culprits_walk culprits_walk(struct state_search *search, uint32_t instances, uint32_t most) {
    struct culprits_walk walk = {.search = search, .instances = instances, .most = most};
    if (search == NULL || search->suspected_end <= search->suspected.first) return walk;
    walk.inner_end = end_of(&search->suspected);
    walk.first = search->suspected;
    walk.first.count = search->suspected_end - walk.first.first;
    walk.at = walk.first.first;
    return walk;
}

/* Each of those that were suspected most ran well: the death had another cause, or needs others
 * beside it. */
static void pass_inner(struct culprits_walk *walk) {
    struct state_search *search = walk->search;
    if (search == NULL) return;
    search->fruitless += search->is_narrowed;
    search->is_narrowed = 0;
}

static void pass_first(struct culprits_walk *walk) {
    walk->is_past_first = true;
    walk->at = 0;
    if (walk->search == NULL) return;
    walk->search->suspected = (struct state_range){.count = 0};
    walk->search->suspected_end = 0;
}

static bool is_culprit(const struct state_search *search, uint32_t instance) {
    for (uint32_t i = 0; search != NULL && i < search->culprit_count; i++)
        if (search->culprits[i].instance == instance) return true;
    return false;
}

/* Moves past what is not to be run here: culprits, and what ran first. */
static void skip(struct culprits_walk *walk, uint32_t end) {
    const struct state_range *first = &walk->first;
    while (walk->at < end) {
        if (walk->is_past_first && first->count > 0 && walk->at == first->first)
            walk->at = end_of(first);
        else if (is_culprit(walk->search, walk->at)) walk->at++;
        else return;
    }
}

/* Up to the next instance that is not to be run here. */
static uint32_t stretch(const struct culprits_walk *walk, uint32_t end, uint32_t most) {
    const struct state_search *search = walk->search;
    uint32_t count = end - walk->at < most ? end - walk->at : most;
    for (uint32_t i = 0; search != NULL && i < search->culprit_count; i++) {
        uint32_t culprit = search->culprits[i].instance;
        if (culprit >= walk->at && culprit - walk->at < count) count = culprit - walk->at;
    }
    uint32_t first = walk->first.first;
    bool is_before = walk->is_past_first && walk->first.count > 0 && first > walk->at;
    return is_before && first - walk->at < count ? first - walk->at : count;
}

bool culprits_walk_next(struct culprits_walk *walk, struct array_slice *ret) {
    uint32_t end = end_of(&walk->first), most = walk->most;
    if (!walk->is_past_first) {
        skip(walk, end);
        if (walk->at >= walk->inner_end) pass_inner(walk);
        if (walk->at >= end) pass_first(walk);
    }
    if (!walk->is_past_first) {
        uint32_t first = walk->first.first;
        if (walk->at < walk->inner_end) end = walk->inner_end;
        if (walk->at >= walk->inner_end) first = walk->inner_end;
        uint32_t part = (end - first + CULPRITS_PARTS - 1) / CULPRITS_PARTS;
        if (part < most) most = part;
    }
    if (walk->is_past_first) {
        end = walk->instances;
        most = walk->most;
        skip(walk, end);
        if (walk->at >= end) return false;
    }
    uint32_t count = stretch(walk, end, most);
    *ret = (struct array_slice){.first = walk->at, .count = count};
    walk->at += count;
    if (walk->search != NULL)
        walk->search->running = (struct state_range){.first = ret->first, .count = count};
    return true;
}

void culprits_walk_fence(struct culprits_walk *walk) {
    if (walk->search != NULL) walk->search->running = (struct state_range){.count = 0};
}

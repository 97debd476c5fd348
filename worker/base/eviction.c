#include "base/eviction.h"

enum {
    USES_MAX = 63,       /* more do not count, so that no item stays for ever */
    USES_TO_JOIN = 2,    /* besides the use that added it */
    TRIAL_SHARE = 10,    /* 1/10 of the budget is kept for items on trial */
    STEPS_MAX = 1024,    /* for making room for one item */
    PASSED_OVER_MAX = 64 /* how many members are checked for a new item */
};

/* All orders are relaxed: an old count only makes an item leave a little too early, and publishes
 * no other memory. */
static uint64_t uses_of(const struct eviction_item *item) {
    return atomic_load_explicit(&item->uses, memory_order_relaxed);
}

static void set_uses(struct eviction_item *item, uint64_t uses) {
    atomic_store_explicit(&item->uses, uses, memory_order_relaxed);
}

void eviction_init(struct eviction *eviction, uint64_t budget) {
    *eviction = (struct eviction){.members_max = budget - budget / TRIAL_SHARE};
}

/* ---- lines ---- */

static void append(struct eviction_line *line, struct eviction_item *item) {
    item->next = NULL;
    item->previous = line->last;
    *(line->last != NULL ? &line->last->next : &line->first) = item;
    line->last = item;
    line->charge += item->charge;
}

static void remove_item(struct eviction_line *line, struct eviction_item *item) {
    *(item->previous != NULL ? &item->previous->next : &line->first) = item->next;
    *(item->next != NULL ? &item->next->previous : &line->last) = item->previous;
    line->charge -= item->charge;
}

static struct eviction_item *remove_first(struct eviction_line *line) {
    struct eviction_item *item = line->first;
    remove_item(line, item);
    return item;
}

static struct eviction_line *line_of(struct eviction *eviction, const struct eviction_item *item) {
    return item->is_member ? &eviction->members : &eviction->trial;
}

/* ---- what is remembered ---- */

static uint32_t fingerprint(uint64_t name) {
    uint32_t print = (uint32_t)(name >> 32);
    return print != 0 ? print : 1;
}

void eviction_remember(struct eviction *eviction, uint64_t name) {
    eviction->ghosts[name % EVICTION_GHOSTS] = fingerprint(name);
}

enum eviction_claim eviction_claim_of(const struct eviction *eviction, uint64_t name) {
    bool is_known = eviction->ghosts[name % EVICTION_GHOSTS] == fingerprint(name);
    return is_known ? EVICTION_FOR_KNOWN : EVICTION_FOR_NEWCOMER;
}

/* ---- items ---- */

void eviction_add(struct eviction *eviction, struct eviction_item *item) {
    item->is_member = eviction_claim_of(eviction, item->name) == EVICTION_FOR_KNOWN;
    set_uses(item, 0);
    append(line_of(eviction, item), item);
}

void eviction_use(struct eviction_item *item) {
    uint64_t uses = uses_of(item);
    if (uses < USES_MAX) set_uses(item, uses + 1);
}

void eviction_put_back(struct eviction *eviction, struct eviction_item *item) {
    append(line_of(eviction, item), item);
}

void eviction_remove(struct eviction *eviction, struct eviction_item *item) {
    remove_item(line_of(eviction, item), item);
}

/* ---- taking ---- */

/* Takes the first member that has no uses left. Each member that is passed loses one use. If a
 * step's bound is reached, takes the least used of the members passed. */
static struct eviction_item *take_member(struct eviction *eviction) {
    struct eviction_item *least = NULL;
    for (int i = 0; i < STEPS_MAX && eviction->members.first != NULL; i++) {
        struct eviction_item *item = remove_first(&eviction->members);
        uint64_t uses = uses_of(item);
        if (uses == 0) return item;
        set_uses(item, uses - 1);
        append(&eviction->members, item);
        if (least == NULL || uses - 1 < uses_of(least)) least = item;
    }
    if (least != NULL) remove_item(&eviction->members, least);
    return least;
}

/* As take_member(), but members that are passed lose no use. */
static struct eviction_item *take_unused_member(struct eviction *eviction) {
    for (int i = 0; i < PASSED_OVER_MAX && eviction->members.first != NULL; i++) {
        struct eviction_item *item = remove_first(&eviction->members);
        if (uses_of(item) == 0) return item;
        append(&eviction->members, item);
    }
    return NULL;
}

/* Takes the first item on trial that was not used enough. Those that were join the members, which
 * may then have too many. */
static struct eviction_item *take_from_trial(struct eviction *eviction) {
    while (eviction->trial.first != NULL) {
        struct eviction_item *item = remove_first(&eviction->trial);
        if (uses_of(item) < USES_TO_JOIN) return item;
        item->is_member = true;
        append(&eviction->members, item);
        if (eviction->members.charge > eviction->members_max) return take_member(eviction);
    }
    return NULL;
}

bool eviction_may_take(const struct eviction *eviction, enum eviction_claim claim) {
    const struct eviction_item *item = eviction->members.first;
    if (eviction->trial.first != NULL || claim != EVICTION_FOR_NEWCOMER)
        return eviction->trial.first != NULL || item != NULL;
    for (int i = 0; i < PASSED_OVER_MAX && item != NULL; i++, item = item->next)
        if (uses_of(item) == 0) return true;
    return false;
}

struct eviction_item *eviction_take(struct eviction *eviction, enum eviction_claim claim) {
    bool are_too_many = eviction->members.charge > eviction->members_max;
    struct eviction_item *item = are_too_many ? take_member(eviction) : take_from_trial(eviction);
    if (item == NULL && claim == EVICTION_FOR_NEWCOMER) item = take_unused_member(eviction);
    else if (item == NULL) item = take_member(eviction);
    if (item != NULL) eviction_remember(eviction, item->name);
    return item;
}

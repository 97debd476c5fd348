#include "quarantine/suspensions.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "state/tables.h"

enum {
    PROBES = 8,
    STANDING_MS = 24 * 3600 * 1000, /* how long good standing lasts */
    STANDING_KEPT_MS = 600 * 1000,  /* one that was renewed within this time is not replaced */
    STANDING_RENEWED_MS =
        60 * 1000, /* one that was renewed within this time is not written again */
};

/* ---- names ---- */

/* Never 0, which marks a free entry. */
static uint64_t hash_of(const struct suspensions *all, struct slice name) {
    uint64_t hash = hash_with_key(all->secret, name);
    return hash != 0 ? hash : 1;
}

static uint64_t hash_of_both(
    const struct suspensions *all, struct slice program, struct slice key) {
    const uint64_t secret[2] = {all->secret[0] ^ hash_of(all, program), all->secret[1]};
    uint64_t hash = hash_with_key(secret, key);
    return hash != 0 ? hash : 1;
}

struct entries {
    struct suspension_entry *items;
    size_t count;
};

static struct entries entries_of(const struct state *state, enum suspension_kind kind) {
    struct suspensions *all = state_suspensions(state);
    if (kind == SUSPENSION_KEY) return (struct entries){all->keys, SUSPENSION_KEYS_MAX};
    return (struct entries){all->programs, SUSPENSION_PROGRAMS_MAX};
}

/* relaxed, as everything in this file: each value stands alone, and a decision on the previous one
 * is as good */
static uint64_t load(const _Atomic uint64_t *value) {
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to) {
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static struct suspension_entry *find(struct entries entries, uint64_t hash) {
    for (size_t i = 0; i < PROBES; i++) {
        struct suspension_entry *entry = &entries.items[(hash + i) % entries.count];
        if (load(&entry->hash) == hash) return entry;
    }
    return NULL;
}

/* Until when the entry matters: a suspended one until its suspension ends. */
static uint64_t weight(const struct suspension_entry *entry) {
    uint64_t until_ms = load(&entry->until_ms), last_ms = 0;
    for (size_t i = 0; i < SUSPENSION_CONVICTIONS_MAX; i++)
        if (entry->at_ms[i] > last_ms) last_ms = entry->at_ms[i];
    return until_ms > last_ms ? until_ms : last_ms;
}

static struct suspension_entry *find_or_add(
    struct entries entries, uint64_t hash, struct slice name) {
    struct suspension_entry *entry = find(entries, hash);
    if (entry != NULL) return entry;
    for (size_t i = 0; i < PROBES; i++) {
        struct suspension_entry *place = &entries.items[(hash + i) % entries.count];
        if (entry == NULL || load(&place->hash) == 0 || weight(place) < weight(entry))
            entry = place;
        if (load(&entry->hash) == 0) break;
    }
    store(&entry->hash, 0);
    store(&entry->until_ms, 0);
    store(&entry->held_until_ns, 0);
    memset(entry->at_ms, 0, sizeof entry->at_ms);
    memset(entry->by, 0, sizeof entry->by);
    entry->name_bytes =
        (uint32_t)(name.size < SUSPENSION_NAME_BYTES ? name.size : SUSPENSION_NAME_BYTES);
    if (entry->name_bytes > 0) memcpy(entry->name, name.data, entry->name_bytes);
    store(&entry->hash, hash);
    return entry;
}

/* ---- good standing ---- */

static struct suspension_standing *find_standing(struct suspensions *all, uint64_t hash) {
    for (size_t i = 0; i < PROBES; i++) {
        struct suspension_standing *standing =
            &all->standings[(hash + i) % SUSPENSION_STANDINGS_MAX];
        if (load(&standing->hash) == hash) return standing;
    }
    return NULL;
}

static uint64_t age_ms(const struct suspension_standing *standing, uint64_t now_ms) {
    uint64_t at_ms = load(&standing->at_ms);
    return now_ms > at_ms ? now_ms - at_ms : 0;
}

void suspensions_praise(
    struct state *state, struct slice key, struct slice program, uint64_t now_ms) {
    if (state == NULL || key.size == 0) return;
    struct suspensions *all = state_suspensions(state);
    uint64_t hash = hash_of_both(all, program, key);
    struct suspension_standing *place = find_standing(all, hash);
    if (place != NULL && age_ms(place, now_ms) < STANDING_RENEWED_MS) return;
    for (size_t i = 0; i < PROBES && place == NULL; i++) {
        struct suspension_standing *other = &all->standings[(hash + i) % SUSPENSION_STANDINGS_MAX];
        if (load(&other->hash) == 0 || age_ms(other, now_ms) > STANDING_KEPT_MS) place = other;
    }
    if (place == NULL) return;
    store(&place->at_ms, now_ms);
    store(&place->hash, hash);
}

static bool is_in_good_standing(
    const struct state *state, struct slice key, struct slice program, uint64_t now_ms) {
    if (key.size == 0) return false;
    struct suspensions *all = state_suspensions(state);
    const struct suspension_standing *standing =
        find_standing(all, hash_of_both(all, program, key));
    return standing != NULL && age_ms(standing, now_ms) < STANDING_MS;
}

/* ---- convictions ---- */

static bool is_within(
    const struct suspension_entry *entry, size_t i, uint32_t window_ms, uint64_t now_ms) {
    return entry->at_ms[i] != 0 && entry->at_ms[i] <= now_ms &&
           now_ms - entry->at_ms[i] <= window_ms;
}

/* The index of the oldest conviction. */
static size_t oldest(const struct suspension_entry *entry) {
    size_t ret = 0;
    for (size_t i = 1; i < SUSPENSION_CONVICTIONS_MAX; i++)
        if (entry->at_ms[i] < entry->at_ms[ret]) ret = i;
    return ret;
}

/* `by` is the key of the job; unless it is 0, only one conviction of it counts within the window.
 * Returns how many there are. */
static uint32_t convict(struct state *state, const struct suspension_rules *rules,
    enum suspension_kind kind, struct slice name, uint64_t by, uint64_t now_ms) {
    struct suspensions *all = state_suspensions(state);
    struct suspension_entry *entry = find_or_add(entries_of(state, kind), hash_of(all, name), name);
    uint32_t count = 1;
    for (size_t i = 0; i < SUSPENSION_CONVICTIONS_MAX; i++) {
        if (!is_within(entry, i, rules->window_ms, now_ms)) continue;
        if (by != 0 && entry->by[i] == by) return count;
        count++;
    }
    size_t place = oldest(entry);
    entry->at_ms[place] = now_ms;
    entry->by[place] = by;
    if (rules->convictions == 0 || count < rules->convictions) return count;
    uint64_t until_ms = now_ms + rules->for_ms;
    store(&entry->until_ms, until_ms);
    memset(entry->at_ms, 0, sizeof entry->at_ms); /* counting starts anew after the suspension */
    if (load(&all->last_until_ms) < until_ms) store(&all->last_until_ms, until_ms);
    return count;
}

uint32_t suspensions_count_death(
    struct state *state, const struct suspension_rules *rules, struct slice key, uint64_t now_ms) {
    if (state == NULL || key.size == 0) return 0;
    return convict(state, rules, SUSPENSION_KEY, key, 0, now_ms);
}

static struct suspension_entry *find_key(const struct state *state, struct slice key) {
    return find(entries_of(state, SUSPENSION_KEY), hash_of(state_suspensions(state), key));
}

void suspensions_hold(struct state *state, struct slice key, uint64_t until_ns) {
    struct suspension_entry *entry = state != NULL ? find_key(state, key) : NULL;
    if (entry != NULL) store(&entry->held_until_ns, until_ns);
}

uint64_t suspensions_held_until(const struct state *state, struct slice key) {
    const struct suspension_entry *entry =
        state != NULL && key.size > 0 ? find_key(state, key) : NULL;
    return entry != NULL ? load(&entry->held_until_ns) : 0;
}

void suspensions_convict(struct state *state, const struct suspension_rules *rules,
    struct slice key, struct slice program, uint64_t now_ms) {
    if (state == NULL || rules->convictions == 0) return;
    struct suspensions *all = state_suspensions(state);
    uint64_t by = key.size > 0 ? hash_of(all, key) : 0;
    struct suspension_standing *standing =
        key.size > 0 ? find_standing(all, hash_of_both(all, program, key)) : NULL;
    if (standing != NULL) store(&standing->hash, 0);
    (void)convict(state, rules, SUSPENSION_PROGRAM, program, by, now_ms);
}

/* ---- questions ---- */

static uint64_t until_of(
    const struct state *state, enum suspension_kind kind, struct slice name, uint64_t now_ms) {
    const struct suspension_entry *entry =
        find(entries_of(state, kind), hash_of(state_suspensions(state), name));
    uint64_t until_ms = entry != NULL ? load(&entry->until_ms) : 0;
    return until_ms > now_ms ? until_ms : 0;
}

bool suspensions_may_apply(const struct state *state) {
    return state != NULL && load(&state_suspensions(state)->last_until_ms) != 0;
}

static bool is_anybody_suspended(const struct state *state, uint64_t now_ms) {
    return state != NULL && load(&state_suspensions(state)->last_until_ms) > now_ms;
}

uint64_t suspensions_key_until(const struct state *state, struct slice key, uint64_t now_ms) {
    if (!is_anybody_suspended(state, now_ms) || key.size == 0) return 0;
    return until_of(state, SUSPENSION_KEY, key, now_ms);
}

uint64_t suspensions_program_until(
    const struct state *state, struct slice key, struct slice program, uint64_t now_ms) {
    if (!is_anybody_suspended(state, now_ms)) return 0;
    uint64_t until_ms = until_of(state, SUSPENSION_PROGRAM, program, now_ms);
    return until_ms != 0 && is_in_good_standing(state, key, program, now_ms) ? 0 : until_ms;
}

void suspensions_each(
    const struct state *state, uint64_t now_ms, suspensions_visit *visit, void *context) {
    if (state == NULL) return;
    for (enum suspension_kind kind = 0; kind < SUSPENSION_KINDS; kind++) {
        struct entries entries = entries_of(state, kind);
        for (size_t i = 0; i < entries.count; i++) {
            const struct suspension_entry *entry = &entries.items[i];
            uint64_t until_ms = load(&entry->until_ms);
            if (load(&entry->hash) == 0 || until_ms <= now_ms) continue;
            size_t size = entry->name_bytes < SUSPENSION_NAME_BYTES ? entry->name_bytes
                                                                    : SUSPENSION_NAME_BYTES;
            const struct suspension found = {
                .kind = kind, .name = slice_of(entry->name, size), .until_ms = until_ms};
            visit(context, &found);
        }
    }
}

struct tally {
    enum suspension_kind kind;
    size_t count;
};

static void count_one(void *context, const struct suspension *suspension) {
    struct tally *tally = context;
    tally->count += suspension->kind == tally->kind;
}

size_t suspensions_count(const struct state *state, enum suspension_kind kind, uint64_t now_ms) {
    struct tally tally = {.kind = kind};
    suspensions_each(state, now_ms, count_one, &tally);
    return tally.count;
}

/* ---- the end of it ---- */

static void lift(struct suspension_entry *entry) {
    store(&entry->until_ms, 0);
    store(&entry->held_until_ns, 0);
    memset(entry->at_ms, 0, sizeof entry->at_ms);
}

bool suspensions_lift(struct state *state, enum suspension_kind kind, struct slice name) {
    if (state == NULL) return false;
    struct suspension_entry *entry =
        find(entries_of(state, kind), hash_of(state_suspensions(state), name));
    bool was_suspended = entry != NULL && load(&entry->until_ms) != 0;
    if (entry != NULL) lift(entry);
    return was_suspended;
}

void suspensions_lift_all(struct state *state) {
    if (state == NULL) return;
    for (enum suspension_kind kind = 0; kind < SUSPENSION_KINDS; kind++) {
        struct entries entries = entries_of(state, kind);
        for (size_t i = 0; i < entries.count; i++) lift(&entries.items[i]);
    }
}

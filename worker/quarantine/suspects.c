#include "quarantine/suspects.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "quarantine/attribution.h"
#include "quarantine/culprits.h"
#include "quarantine/fetches.h"
#include "quarantine/turns.h"

static const char FIX[] = "correct the kernel, or what the job gives it; see its dead letter";

struct suspects {
    struct suspects_options options;
    /* messages that wait, in order; the intake thread's */
    struct delivery *first, **end;
    size_t waiting_count, waiting_suspects, waiting_held;
    uint64_t held_until_ns; /* of those suspects, the one that is held for the shortest time */
    /* False: the table is known to be empty. Written by the intake thread; relaxed: other threads
     * only ask about messages that they got while it was false. */
    atomic_bool is_active;
    /* under the lock */
    size_t count, capacity;       /* of `table` */
    struct state_suspect **table; /* suspects and convicted messages, in the state file */
    struct state_suspect *alone;  /* it was admitted and is not answered; NULL: none */
    uint64_t in_flight;           /* suspects that were admitted and are not published */
    bool are_parked;              /* long jobs, so that a suspect need not wait for their end */
    struct turns turns;
};

static void name_message(
    struct state *state, const struct state_suspect *suspect, const char *event, const char *what) {
    const char *topic = state_topic(state, &suspect->at);
    const struct log_fields fields = {.event = event,
        .topic = topic,
        .partition = suspect->at.partition,
        .offset = suspect->at.offset};
    log_event(LOG_WARN, &fields, "%s: %s/%" PRId32 "/%" PRId64, what, topic != NULL ? topic : "?",
        suspect->at.partition, suspect->at.offset);
}

static void log_attribution(struct state *state, const struct attribution *attribution) {
    const struct state_suspect *convicted = attribution->convicted;
    if (attribution->suspects > 0)
        log_event(LOG_WARN, LOG_EVENT("suspects"),
            "the last executor died: %zu messages that it had in hand run alone now%s%s",
            attribution->suspects, attribution->death.message[0] != 0 ? "; " : "",
            attribution->death.message);
    if (attribution->has_narrowed)
        log_line(LOG_WARN, "it died of some instances of an array, which run first now, in parts");
    if (convicted != NULL)
        name_message(state, convicted, "convicted", "convicted, and not run again");
    if (convicted != NULL) log_line(LOG_WARN, "convicted of: %s", convicted->message);
    if (attribution->overlooked > 0)
        log_line(LOG_WARN, "it had %zu more messages in hand than the state file can name",
            attribution->overlooked);
}

/* Attributes the last death and begins a new life. The table may move in between. */
static enum err begin_life(
    const struct suspects_options *options, struct turns *turns, struct error *err) {
    fetches_judge(options->state);
    const struct attribution attribution = attribution_apply(options->state);
    log_attribution(options->state, &attribution);
    *turns = turns_begin(attribution.alone_ns, clock_ns());
    return state_begin(options->state, &options->shape, options->device, options->uuid, err);
}

static void set_active(struct suspects *suspects, bool is_active) {
    atomic_store_explicit(&suspects->is_active, is_active, memory_order_relaxed); /* see there */
}

/* Of messages that are no suspects any more. */
static void forget_searches(const struct suspects *suspects) {
    struct state_search *searches = state_searches(suspects->options.state);
    for (size_t i = 0; i < STATE_SEARCHES_MAX; i++) {
        bool is_known = false;
        for (size_t k = 0; k < suspects->count && !is_known; k++)
            is_known = state_same_message(&searches[i].at, &suspects->table[k]->at);
        if (!is_known) searches[i].use = STATE_SEARCH_FREE;
    }
}

enum err suspects_start(
    const struct suspects_options *options, struct suspects **ret, struct error *err) {
    struct state *state = options->state;
    if (state == NULL) return ERR_OK;
    struct turns turns;
    enum err code = begin_life(options, &turns, err);
    if (code != ERR_OK) return code;
    size_t capacity;
    struct state_suspect *all = state_suspects(state, &capacity);
    struct suspects *suspects = calloc(1, sizeof *suspects);
    if (suspects != NULL) suspects->table = calloc(capacity, sizeof suspects->table[0]);
    if (suspects == NULL || suspects->table == NULL) {
        free(suspects);
        return error_no_memory(err, "no memory for suspects");
    }
    suspects->options = *options;
    suspects->turns = turns;
    suspects->capacity = capacity;
    suspects->end = &suspects->first;
    for (size_t i = 0; i < capacity; i++)
        if (all[i].standing != STATE_FREE) suspects->table[suspects->count++] = &all[i];
    forget_searches(suspects);
    set_active(suspects, suspects->count > 0);
    *ret = suspects;
    return ERR_OK;
}

void suspects_stop(struct suspects *suspects, bool is_lost) {
    if (suspects == NULL) return;
    suspects_drop_waiting(suspects);
    /* it was not answered and did not end this life, so a later life runs it again */
    if (suspects->alone != NULL && !is_lost) suspects->alone->standing = STATE_SUSPECT;
    free(suspects->table);
    free(suspects);
}

/* NULL: nothing is known of the message. */
static struct state_suspect *find(
    const struct suspects *suspects, const struct position *position) {
    struct state_entry entry;
    if (!state_entry_of(suspects->options.state, position, 0, &entry)) return NULL;
    for (size_t i = 0; i < suspects->count; i++)
        if (state_same_message(&suspects->table[i]->at, &entry)) return suspects->table[i];
    return NULL;
}

/* What is known of the message; STATE_FREE: nothing. */
static struct state_suspect look_up(
    const struct suspects *suspects, const struct position *position) {
    pthread_mutex_lock(suspects->options.lock);
    const struct state_suspect *found = find(suspects, position);
    struct state_suspect ret = found != NULL ? *found : (struct state_suspect){0};
    pthread_mutex_unlock(suspects->options.lock);
    return ret;
}

/*
 * The number of attempts before the present one: those up to the first death, plus one for each
 * death while it was alone. A convicted message does not run again, so its answer counts for its
 * last attempt.
 */
static uint32_t failed_attempts(const struct state_suspect *known) {
    if (known->standing == STATE_FREE) return 0;
    uint32_t attempts = known->at.attempt + known->tries;
    return attempts - (known->standing != STATE_SUSPECT);
}

bool suspects_are_known(const struct suspects *suspects) {
    return suspects != NULL &&
           atomic_load_explicit(&suspects->is_active, memory_order_relaxed); /* see there */
}

void suspects_count_death(
    struct suspects *suspects, const struct suspension_rules *rules, struct slice key) {
    struct state *state = suspects->options.state;
    uint64_t now_ms = clock_unix_ms();
    bool was_suspended = suspensions_key_until(state, key, now_ms) != 0;
    uint32_t deaths = suspensions_count_death(state, rules, key, now_ms);
    suspensions_hold(state, key, clock_ns() + turns_hold_ns(&suspects->turns, deaths));
    if (!was_suspended && suspensions_key_until(state, key, now_ms) != 0)
        log_event(LOG_WARN, LOG_EVENT("suspended"),
            "a key is suspended for %" PRIu32 " s: its jobs have ended executors %" PRIu32
            " times; gpu-worker resume shows it",
            rules->for_ms / 1000, deaths);
}

/* Counts arrays in search of culprits. With the lock, and while no array runs that searches. */
static void count_search(struct suspects *suspects, const struct delivery *delivery) {
    const struct state_suspect *known = find(suspects, &delivery->position);
    struct state_search *search =
        known != NULL ? culprits_find(suspects->options.state, &known->at) : NULL;
    if (search == NULL) return;
    uint32_t deaths = search->deaths - search->counted_deaths;
    search->counted_deaths = search->deaths;
    for (uint32_t i = 0; i < deaths && i < SUSPENSION_CONVICTIONS_MAX; i++)
        suspects_count_death(suspects, &suspects->options.rules, delivery->key);
}

/* ---- turns ---- */

/* Messages that were admitted, are not published, and are no suspects. */
static uint64_t others_in_flight(const struct suspects *suspects) {
    return *suspects->options.in_flight - suspects->waiting_count - suspects->in_flight;
}

/* Long jobs are not waited for: between two chunks they rest, and what stands behind them does. */
static uint64_t park(struct suspects *suspects, bool are_parked) {
    suspects->are_parked = are_parked;
    return suspects->options.park(suspects->options.context, are_parked);
}

bool suspects_have_turn(struct suspects *suspects) {
    if (suspects == NULL) return false;
    if (suspects->alone != NULL) return true;
    uint64_t now_ns = clock_ns();
    if (suspects->waiting_suspects > 0 &&
        turns_have_come(&suspects->turns, suspects->held_until_ns, now_ns))
        return true;
    if (suspects->are_parked) (void)park(suspects, false);
    if (others_in_flight(suspects) > 0) suspects->turns.others_ns = now_ns;
    return false;
}

void suspects_note_end(struct suspects *suspects) {
    if (suspects != NULL) suspects->turns.is_over = true;
}

static bool is_of_key(const struct suspects *suspects, const struct delivery *ahead,
    const struct delivery *delivery) {
    return suspects->options.keeps_key_order && delivery->key.size > 0 &&
           slice_equal(ahead->key, delivery->key);
}

/* Where jobs of a key run in order: one of this key waits, ahead of `end`. Else what has to wait
 * for no suspect waits for none. */
static bool is_behind(
    const struct suspects *suspects, const struct delivery *delivery, const struct delivery *end) {
    const struct delivery *ahead = suspects->first;
    while (ahead != end && !is_of_key(suspects, ahead, delivery)) ahead = ahead->next;
    return ahead != end;
}

static uint64_t key_held_until(const struct suspects *suspects, struct slice key) {
    const struct state *state = suspects->options.state;
    if (suspensions_key_until(state, key, clock_unix_ms()) != 0) return 0; /* nothing is run */
    uint64_t until_ns = suspensions_held_until(state, key);
    return until_ns > clock_ns() ? until_ns : 0;
}

/* As long at least as those ahead of it: what holds a key changes, and the order of its jobs does
 * not. */
static uint64_t held_until(const struct suspects *suspects, const struct delivery *delivery) {
    uint64_t until_ns = key_held_until(suspects, delivery->key);
    for (const struct delivery *ahead = suspects->first; ahead != NULL; ahead = ahead->next)
        if (is_of_key(suspects, ahead, delivery) && ahead->held_until_ns > until_ns)
            until_ns = ahead->held_until_ns;
    return until_ns;
}

/* With the lock. */
static bool is_free(struct suspects *suspects, const struct delivery *delivery) {
    return !delivery->is_suspect && !suspects_have_turn(suspects) &&
           !turns_hold(&suspects->turns, delivery->held_until_ns, clock_ns()) &&
           !is_behind(suspects, delivery, NULL);
}

static void append(struct suspects *suspects, struct delivery *delivery) {
    delivery->next = NULL;
    *suspects->end = delivery;
    suspects->end = &delivery->next;
    suspects->waiting_count++;
    suspects->waiting_held += delivery->held_until_ns != 0;
    if (!delivery->is_suspect) return;
    if (suspects->waiting_suspects++ == 0 || delivery->held_until_ns < suspects->held_until_ns)
        suspects->held_until_ns = delivery->held_until_ns;
}

bool suspects_pass(struct suspects *suspects, struct delivery *delivery) {
    delivery->is_suspect = delivery->is_suspect && suspects != NULL;
    if (delivery->is_suspect) set_active(suspects, true);
    if (!suspects_are_known(suspects)) return true;
    const struct state_suspect known = look_up(suspects, &delivery->position);
    if (known.standing != STATE_FREE) delivery->is_suspect = known.standing == STATE_SUSPECT;
    delivery->failed_attempts = failed_attempts(&known);
    pthread_mutex_lock(suspects->options.lock);
    if (delivery->is_suspect && suspects->alone == NULL) count_search(suspects, delivery);
    delivery->held_until_ns = held_until(suspects, delivery);
    bool passes = is_free(suspects, delivery);
    set_active(suspects, suspects->count > 0 || suspects->first != NULL || !passes);
    pthread_mutex_unlock(suspects->options.lock);
    if (passes) return true;
    if (!suspects->options.keep(suspects->options.context, delivery)) return false;
    append(suspects, delivery);
    return false;
}

bool suspects_are_waiting(const struct suspects *suspects) {
    return suspects != NULL && suspects->first != NULL;
}

size_t suspects_count_held(const struct suspects *suspects) {
    return suspects != NULL ? suspects->waiting_held : 0;
}

/* The next message that may go on: a suspect once all others in flight are answered suspects. NULL:
 * none. */
static struct delivery **find_next(struct suspects *suspects) {
    bool is_turn = suspects_have_turn(suspects);
    if (suspects->alone != NULL) return NULL;
    const struct turns *turns = &suspects->turns;
    uint64_t now_ns = clock_ns();
    struct delivery **link = &suspects->first;
    for (; *link != NULL; link = &(*link)->next) {
        const struct delivery *next = *link;
        if (!next->is_suspect && !turns_hold(turns, next->held_until_ns, now_ns) &&
            !is_behind(suspects, next, next))
            return link;
        if (next->is_suspect && is_turn && turns_have_come(turns, next->held_until_ns, now_ns))
            return others_in_flight(suspects) == park(suspects, true) ? link : NULL;
    }
    return NULL;
}

bool suspects_can_take(struct suspects *suspects) {
    return suspects_are_waiting(suspects) && find_next(suspects) != NULL;
}

static struct delivery *remove_at(struct suspects *suspects, struct delivery **link) {
    struct delivery *removed = *link;
    *link = removed->next;
    if (*link == NULL) suspects->end = link;
    suspects->waiting_count--;
    suspects->waiting_held -= removed->held_until_ns != 0;
    if (!removed->is_suspect) return removed;
    suspects->waiting_suspects--;
    suspects->held_until_ns = UINT64_MAX;
    for (const struct delivery *each = suspects->first; each != NULL; each = each->next)
        if (each->is_suspect && each->held_until_ns < suspects->held_until_ns)
            suspects->held_until_ns = each->held_until_ns;
    return removed;
}

/* A new entry is for a message that an earlier owner ran, and died. NULL if the state file has no
 * room. */
static struct state_suspect *find_or_add(
    struct suspects *suspects, const struct position *position) {
    struct state_suspect *found = find(suspects, position);
    if (found != NULL) return found;
    struct state_entry entry;
    size_t capacity, free_place = 0;
    struct state_suspect *all = state_suspects(suspects->options.state, &capacity);
    while (free_place < capacity && all[free_place].standing != STATE_FREE) free_place++;
    if (free_place == capacity || !state_entry_of(suspects->options.state, position, 1, &entry))
        return NULL;
    all[free_place] = (struct state_suspect){.at = entry};
    INVARIANT(suspects->count < suspects->capacity, "the table has a place for each suspect");
    suspects->table[suspects->count++] = &all[free_place];
    return &all[free_place];
}

struct delivery *suspects_take(struct suspects *suspects) {
    if (!suspects_are_waiting(suspects)) return NULL;
    struct delivery *taken = NULL;
    pthread_mutex_lock(suspects->options.lock);
    struct delivery **next = find_next(suspects);
    if (next != NULL) {
        taken = remove_at(suspects, next);
        suspects->alone = taken->is_suspect ? find_or_add(suspects, &taken->position) : NULL;
        taken->is_suspect = suspects->alone != NULL;
        if (taken->is_suspect) {
            count_search(suspects, taken);
            suspects->alone->standing = STATE_DECODING_ALONE;
            suspects->alone->alone_ns = clock_ns();
            suspects->in_flight++;
        }
    }
    pthread_mutex_unlock(suspects->options.lock);
    return taken;
}

void suspects_drop_waiting(struct suspects *suspects) {
    while (suspects_are_waiting(suspects))
        suspects->options.drop(suspects->options.context, remove_at(suspects, &suspects->first));
}

enum verdict suspects_verdict(
    const struct suspects *suspects, const struct position *position, struct error *err) {
    if (!suspects_are_known(suspects)) return VERDICT_NONE;
    const struct state_suspect known = look_up(suspects, position);
    bool is_undecodable = known.standing == STATE_UNDECODABLE;
    if (!is_undecodable && known.standing != STATE_CONVICTED) return VERDICT_NONE;
    error_set(err, known.code, 0, FIX, "%s", known.message);
    return is_undecodable ? VERDICT_UNDECODABLE : VERDICT_GUILTY;
}

bool suspects_count_conviction(struct suspects *suspects, const struct position *position) {
    pthread_mutex_lock(suspects->options.lock);
    struct state_suspect *convicted = find(suspects, position);
    bool is_new = convicted != NULL && convicted->is_counted == 0;
    if (is_new) convicted->is_counted = 1;
    pthread_mutex_unlock(suspects->options.lock);
    return is_new;
}

uint32_t suspects_hung_with(const struct suspects *suspects) {
    return suspects->alone->hung_with;
}

uint64_t suspects_rounds(const struct suspects *suspects) {
    return suspects->alone->rounds;
}

void suspects_decoded(struct suspects *suspects, const struct delivery *delivery) {
    if (delivery->is_suspect) suspects->alone->standing = STATE_ALONE;
}

static void forget(struct suspects *suspects, struct state_suspect *suspect) {
    size_t i = 0;
    while (i < suspects->count && suspects->table[i] != suspect) i++;
    INVARIANT(i < suspects->count, "a suspect that is forgotten was known");
    suspects->table[i] = suspects->table[--suspects->count];
    suspect->standing = STATE_FREE;
    culprits_forget(suspects->options.state, &suspect->at);
}

/* If another message ends this life before the answer is committed, it is read again: the next life
 * must know the culprits, and not find them by as many deaths again. */
static void keep_or_forget(struct suspects *suspects, struct state_suspect *answered) {
    if (culprits_keep(suspects->options.state, &answered->at)) answered->standing = STATE_SUSPECT;
    else forget(suspects, answered);
}

/* Long jobs have a chunk before the next suspect, if there is one; nobody else would free them. */
static void end_turn(struct suspects *suspects) {
    suspects->alone = NULL;
    if (suspects->are_parked) (void)park(suspects, false);
}

void suspects_answered(struct suspects *suspects) {
    pthread_mutex_lock(suspects->options.lock);
    turns_end_step(&suspects->turns, suspects->alone->alone_ns, clock_ns());
    keep_or_forget(suspects, suspects->alone);
    end_turn(suspects);
    pthread_cond_broadcast(suspects->options.changed);
    pthread_mutex_unlock(suspects->options.lock);
}

void suspects_acquit(struct suspects *suspects, struct delivery *delivery) {
    suspects_answered(suspects);
    suspects_published(suspects, 1);
    delivery->is_suspect = false;
}

void suspects_handed_back(struct suspects *suspects) {
    pthread_mutex_lock(suspects->options.lock);
    suspects->alone->standing = STATE_SUSPECT;
    end_turn(suspects);
    suspects->in_flight--;
    pthread_cond_broadcast(suspects->options.changed);
    pthread_mutex_unlock(suspects->options.lock);
}

void suspects_on_committed(void *context, const char *topic, int32_t partition, int64_t next) {
    struct suspects *suspects = context;
    const struct position end = {.topic = topic, .partition = partition, .offset = next};
    struct state_entry entry;
    if (!state_entry_of(suspects->options.state, &end, 0, &entry)) return;
    pthread_mutex_lock(suspects->options.lock);
    fetches_move(suspects->options.state, topic, partition, next);
    for (size_t i = suspects->count; i-- > 0;) {
        struct state_suspect *suspect = suspects->table[i];
        bool is_committed = suspect->at.topic == entry.topic &&
                            suspect->at.partition == partition && suspect->at.offset < next;
        if (is_committed && suspect != suspects->alone) forget(suspects, suspect);
    }
    pthread_mutex_unlock(suspects->options.lock);
}

void suspects_published(struct suspects *suspects, uint64_t count) {
    if (suspects == NULL || count == 0) return;
    pthread_mutex_lock(suspects->options.lock);
    suspects->in_flight -= count;
    pthread_mutex_unlock(suspects->options.lock);
}

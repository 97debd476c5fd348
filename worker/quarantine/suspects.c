#include "quarantine/suspects.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/invariant.h"
#include "base/log.h"
#include "quarantine/attribution.h"
#include "quarantine/culprits.h"
#include "quarantine/fetches.h"

static const char FIX[] = "correct the kernel, or what the job gives it; see its dead letter";

struct suspects {
    struct suspects_options options;
    /* messages that wait, in order; the intake thread's */
    struct delivery *first, **end;
    size_t waiting_count;
    /* False: the table is known to be empty. Written by the intake thread; relaxed: other threads
     * only ask about messages that they got while it was false. */
    atomic_bool is_active;
    /* under the lock */
    size_t count, capacity;       /* of `table` */
    struct state_suspect **table; /* suspects and convicted messages, in the state file */
    struct state_suspect *alone;  /* it was admitted and is not answered; NULL: none */
    uint64_t in_flight;           /* suspects that were admitted and are not published */
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
static enum err begin_life(const struct suspects_options *options, struct error *err) {
    fetches_judge(options->state);
    const struct attribution attribution = attribution_apply(options->state);
    log_attribution(options->state, &attribution);
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
        if (!is_known) searches[i].is_used = 0;
    }
}

enum err suspects_start(
    const struct suspects_options *options, struct suspects **ret, struct error *err) {
    struct state *state = options->state;
    if (state == NULL) return ERR_OK;
    enum err code = begin_life(options, err);
    if (code != ERR_OK) return code;
    size_t capacity;
    struct state_suspect *all = state_suspects(state, &capacity);
    struct suspects *suspects = calloc(1, sizeof *suspects);
    if (suspects != NULL) suspects->table = calloc(capacity, sizeof suspects->table[0]);
    if (suspects == NULL || suspects->table == NULL) {
        free(suspects);
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for suspects");
    }
    suspects->options = *options;
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

bool suspects_pass(struct suspects *suspects, struct delivery *delivery) {
    delivery->is_suspect = delivery->is_suspect && suspects != NULL;
    if (delivery->is_suspect) set_active(suspects, true);
    if (!suspects_are_known(suspects)) return true;
    const struct state_suspect known = look_up(suspects, &delivery->position);
    if (known.standing != STATE_FREE) delivery->is_suspect = known.standing == STATE_SUSPECT;
    delivery->failed_attempts = failed_attempts(&known);
    pthread_mutex_lock(suspects->options.lock);
    bool is_free = suspects->alone == NULL && suspects->first == NULL && !delivery->is_suspect;
    set_active(suspects, suspects->count > 0 || !is_free);
    pthread_mutex_unlock(suspects->options.lock);
    if (is_free) return true;
    if (!suspects->options.keep(suspects->options.context, delivery)) return false;
    delivery->next = NULL;
    *suspects->end = delivery;
    suspects->end = &delivery->next;
    suspects->waiting_count++;
    return false;
}

bool suspects_are_waiting(const struct suspects *suspects) {
    return suspects != NULL && suspects->first != NULL;
}

/* A suspect may run once all other messages in flight are answered suspects. */
bool suspects_can_take(const struct suspects *suspects) {
    if (!suspects_are_waiting(suspects) || suspects->alone != NULL) return false;
    return !suspects->first->is_suspect ||
           *suspects->options.in_flight - suspects->waiting_count == suspects->in_flight;
}

static struct delivery *remove_first(struct suspects *suspects) {
    struct delivery *first = suspects->first;
    suspects->first = first->next;
    if (suspects->first == NULL) suspects->end = &suspects->first;
    suspects->waiting_count--;
    return first;
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
    if (suspects_can_take(suspects)) {
        taken = remove_first(suspects);
        suspects->alone = taken->is_suspect ? find_or_add(suspects, &taken->position) : NULL;
        taken->is_suspect = suspects->alone != NULL;
        if (taken->is_suspect) {
            suspects->alone->standing = STATE_DECODING_ALONE;
            suspects->in_flight++;
        }
    }
    pthread_mutex_unlock(suspects->options.lock);
    return taken;
}

void suspects_drop_waiting(struct suspects *suspects) {
    while (suspects_are_waiting(suspects))
        suspects->options.drop(suspects->options.context, remove_first(suspects));
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

void suspects_answered(struct suspects *suspects) {
    pthread_mutex_lock(suspects->options.lock);
    forget(suspects, suspects->alone);
    suspects->alone = NULL;
    pthread_cond_broadcast(suspects->options.changed);
    pthread_mutex_unlock(suspects->options.lock);
}

void suspects_handed_back(struct suspects *suspects) {
    pthread_mutex_lock(suspects->options.lock);
    suspects->alone->standing = STATE_SUSPECT;
    suspects->alone = NULL;
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
    if (suspects != NULL) suspects->in_flight -= count;
}

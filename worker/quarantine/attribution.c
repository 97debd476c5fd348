#include "quarantine/attribution.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "quarantine/culprits.h"

struct hearing {
    struct state *state;
    struct attribution *attribution;
};

static bool is_alone(const struct state_suspect *suspect) {
    return suspect->standing == STATE_DECODING_ALONE || suspect->standing == STATE_ALONE;
}

/* The message that ran alone when the executor died. NULL: none, or more than one, which only
 * damage can cause. */
static struct state_suspect *find_alone(struct state *state) {
    size_t capacity, count = 0;
    struct state_suspect *suspects = state_suspects(state, &capacity), *found = NULL;
    for (size_t i = 0; i < capacity; i++) {
        if (!is_alone(&suspects[i])) continue;
        found = &suspects[i];
        count++;
    }
    if (count == 1) return found;
    for (size_t i = 0; i < capacity; i++)
        if (is_alone(&suspects[i])) suspects[i].standing = STATE_SUSPECT;
    return NULL;
}

static enum err code_of(const struct state_death *death) {
    switch (death->kind) {
    case STATE_DEATH_STICKY:
    case STATE_DEATH_HANG: return death->code;
    case STATE_DEATH_NONE:
    case STATE_DEATH_SIGNAL:
    case STATE_DEATH_STALL:
    case STATE_DEATH_STOP:
    case STATE_DEATH_OWN: break;
    }
    return ERR_WORKER_CRASH;
}

static void convict(struct state_suspect *suspect, const struct state_death *death) {
    bool was_decoded = suspect->standing == STATE_ALONE;
    suspect->code = code_of(death);
    if (death->kind != STATE_DEATH_NONE)
        text_format(suspect->message, sizeof suspect->message, "%s", death->message);
    else
        snprintf(suspect->message, sizeof suspect->message,
            "the executor died %" PRIu32 " times while this job ran alone, for no known reason",
            suspect->tries);
    suspect->standing = was_decoded ? STATE_CONVICTED : STATE_UNDECODABLE;
}

/* The message's entry in the table, or a free one; NULL if there is neither. */
static struct state_suspect *find_place(struct state *state, const struct state_entry *entry) {
    size_t capacity;
    struct state_suspect *suspects = state_suspects(state, &capacity), *place = NULL;
    for (size_t i = 0; i < capacity; i++) {
        if (suspects[i].standing == STATE_FREE) {
            if (place == NULL) place = &suspects[i];
        } else if (state_same_message(&suspects[i].at, entry)) {
            return &suspects[i];
        }
    }
    return place;
}

/* If answering a convicted message crashes again and again, it gets only a dead letter in the end.
 * */
static void suspect_answer(struct state_suspect *convicted) {
    convicted->tries++;
    if (convicted->tries > ATTRIBUTION_TRIES_MAX) convicted->standing = STATE_UNDECODABLE;
}

/* The message was in the batch that the watchdog found, and not alone. */
static bool has_hung(const struct state_left *left, const struct state_death *death) {
    return death->kind == STATE_DEATH_HANG && left->is_on_device && left->lane == death->lane &&
           left->batch == death->batch && left->batch_jobs > 1;
}

static void suspect(void *context, const struct state_left *left) {
    struct hearing *hearing = context;
    struct state_entry entry;
    struct state_suspect *place = NULL;
    if (state_entry_of(hearing->state, &left->position, left->attempt, &entry))
        place = find_place(hearing->state, &entry);
    if (place == NULL) {
        hearing->attribution->overlooked++;
    } else if (place->standing == STATE_FREE) {
        *place =
            (struct state_suspect){.at = entry, .standing = STATE_SUSPECT, .rounds = left->rounds};
        if (has_hung(left, &hearing->attribution->death)) place->hung_with = left->batch_jobs;
    } else if (place->standing == STATE_SUSPECT && place->rounds < left->rounds) {
        place->rounds = left->rounds;
    } else if (place->standing == STATE_CONVICTED && place != hearing->attribution->convicted &&
               !left->is_on_device && hearing->attribution->death.kind == STATE_DEATH_SIGNAL) {
        suspect_answer(place);
    }
}

/* A stop, or a problem of the worker itself, is no evidence against messages in hand. */
static bool concerns_messages(const struct state_death *death) {
    return death->kind == STATE_DEATH_NONE || state_is_evidence(death->kind);
}

/* True where the death was that of some instances of an array, which are looked at first from now
 * on: the others have another try. */
static bool blame_instances(
    struct state *state, const struct state_suspect *alone, const struct state_death *death) {
    struct state_search *search = culprits_find(state, &alone->at);
    if (search == NULL || alone->standing != STATE_ALONE || !state_is_evidence(death->kind))
        return false;
    search->deaths++;
    return culprits_blame(search, code_of(death), death->message);
}

/* Deaths that were of some instances say nothing of those without a known cause. */
static uint32_t unexplained_tries(const struct state *state, const struct state_suspect *alone) {
    const struct state_search *search = culprits_find(state, &alone->at);
    return search != NULL ? alone->tries - search->deaths : alone->tries;
}

/* Convicts the message that ran alone, or gives it another try. */
static void judge(
    struct state *state, struct state_suspect *alone, struct attribution *attribution) {
    bool is_explained = state_is_evidence(attribution->death.kind);
    if (concerns_messages(&attribution->death) && !state_is_fault_of_device(&attribution->death)) {
        alone->tries++;
        attribution->has_narrowed = blame_instances(state, alone, &attribution->death);
        bool is_proved = is_explained || unexplained_tries(state, alone) > ATTRIBUTION_TRIES_MAX;
        if (is_proved && !attribution->has_narrowed) attribution->convicted = alone;
    }
    if (attribution->convicted != NULL) convict(alone, &attribution->death);
    else alone->standing = STATE_SUSPECT;
}

static size_t count_suspects(struct state *state) {
    size_t capacity, count = 0;
    const struct state_suspect *suspects = state_suspects(state, &capacity);
    for (size_t i = 0; i < capacity; i++) count += suspects[i].standing == STATE_SUSPECT;
    return count;
}

struct attribution attribution_apply(struct state *state) {
    struct attribution attribution = {.death = state_death(state)};
    struct hearing hearing = {.state = state, .attribution = &attribution};
    struct state_suspect *alone = find_alone(state);
    if (alone != NULL) attribution.alone_ns = alone->alone_ns;
    if (alone != NULL) judge(state, alone, &attribution);
    if (concerns_messages(&attribution.death)) state_each_left(state, suspect, &hearing);
    attribution.suspects = count_suspects(state);
    return attribution;
}

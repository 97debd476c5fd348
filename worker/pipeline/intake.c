#include "pipeline/intake.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "pipeline/admission.h"
#include "pipeline/control.h"
#include "pipeline/flow.h"
#include "pipeline/ordering.h"
#include "pipeline/retries.h"
#include "quarantine/suspects.h"

enum {
    POLL_MS = 100,
    DRAIN_POLL_MS = 10,
    /* Holding back shorter than this is done by not polling: pausing a consumer throws away what it
     * has fetched ahead. Longer, and it is paused and polled, so that it stays in its group. */
    HOLD_MS = 500,
    PROGRESS_MS = 10000,
    LATE_MS = 60000, /* a message that holds up its partition's commit so long is named */
    IDLE_MS = 1000,  /* between two looks for residents that no job uses */
    /* More at once would keep the lanes waiting for its last message. */
    GROUP_BYTES_MAX = 1 << 20
};

/* Many jobs wait for trouble of our own: more would wait as well, and other workers may be well. */
static bool is_troubled(const struct stages *stages, uint64_t jobs_max) {
    return blobs_trouble(stages->blobs)[0] != 0 && 4 * retries_count(stages->retries) >= jobs_max;
}

static uint64_t at_most(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

/* Jobs of a key that is held, or that wait behind others of their key, take no places. */
static uint64_t places_taken(const struct stages *stages) {
    uint64_t aside = ordering_count_aside(stages) + suspects_count_held(stages->suspects);
    uint64_t messages = stages->flight.messages;
    return messages - at_most(at_most(aside, ASIDE_MAX), messages);
}

/* Above the limits, while jobs wait for memory, or, once holding back, above three quarters of
 * them: no flapping. */
static bool is_full(const struct stages *stages, bool is_holding) {
    uint64_t jobs = stages->settings->limits.jobs_in_flight;
    uint64_t bytes = stages->flight.bytes_max;
    if (is_holding) {
        jobs -= jobs / 4;
        bytes -= bytes / 4;
    }
    return places_taken(stages) >= jobs || stages->flight.bytes >= bytes ||
           stages->flight.waiting_for_memory > 0 || is_troubled(stages, jobs);
}

/* What may be taken at once. */
struct room {
    uint64_t jobs, bytes;
};

/* What waits behind a suspect is in flight and may be all that there is room for, and results
 * count on top of what was taken: none is left then. */
static uint64_t left(uint64_t limit, uint64_t used) {
    return used < limit ? limit - used : 0;
}

static struct room room_of(struct stages *stages) {
    const struct settings *settings = stages->settings;
    if (suspects_have_turn(stages->suspects)) return (struct room){.jobs = 0};
    uint64_t jobs = left(settings->limits.jobs_in_flight, places_taken(stages));
    uint64_t bytes = left(stages->flight.bytes_max, stages->flight.bytes);
    return (struct room){.jobs = at_most(at_most(jobs, STAGES_GROUP_MAX),
                             bytes / flight_expect(&stages->flight) + 1),
        .bytes = at_most(bytes, GROUP_BYTES_MAX)};
}

/* In the turn of a suspect nothing more is taken; and nothing at all before it is known what was
 * cancelled. */
static bool must_wait(struct stages *stages, bool is_holding) {
    if (!control_has_caught_up(stages->control)) return true;
    if (suspects_can_take(stages->suspects)) return false;
    return suspects_have_turn(stages->suspects) || is_full(stages, is_holding);
}

/* Waits for room; false where there is none after HOLD_MS. */
static bool wait_for_room(struct stages *stages, bool is_paused, struct room *ret) {
    flight_lock(&stages->flight);
    bool full = must_wait(stages, is_paused);
    uint64_t until = clock_ns() + (is_paused ? DRAIN_POLL_MS : HOLD_MS) * 1000000ull;
    while (full && !stages_has_failed(stages) && clock_ns() < until) {
        flight_wait(&stages->flight, DRAIN_POLL_MS);
        full = must_wait(stages, true);
    }
    if (!full) *ret = room_of(stages);
    flight_unlock(&stages->flight);
    return !full;
}

/* What was logged last of how things go. */
struct progress {
    uint64_t due_ns;
    struct oldest_unfinished late;
};

/* One line for each message that is late. */
static void log_late(struct stages *stages, struct oldest_unfinished *late) {
    struct oldest_unfinished oldest = collector_read_oldest(stages->source);
    bool is_known = oldest.topic == late->topic && oldest.partition == late->partition &&
                    oldest.offset == late->offset;
    if (oldest.topic == NULL || is_known || oldest.age_ns < LATE_MS * 1000000ull) return;
    *late = oldest;
    const struct log_fields fields = {.event = "held_up",
        .topic = oldest.topic,
        .partition = oldest.partition,
        .offset = oldest.offset};
    log_event(LOG_WARN, &fields,
        "%s/%" PRId32 "/%" PRId64 " has been unfinished for %" PRIu64
        " s; %d messages above it at most are run until it is",
        oldest.topic, oldest.partition, oldest.offset, oldest.age_ns / 1000000000u, OFFSETS_WINDOW);
}

static void log_progress(struct stages *stages, struct progress *progress) {
    if (clock_ns() < progress->due_ns) return;
    progress->due_ns = clock_ns() + PROGRESS_MS * 1000000ull;
    log_late(stages, &progress->late);
    flight_lock(&stages->flight);
    struct executor_summary summary = stages->flight.summary;
    uint64_t in_flight = stages->flight.messages;
    flight_unlock(&stages->flight);
    log_event(LOG_INFO, LOG_EVENT("progress"),
        "running: %" PRIu64 " ok, %" PRIu64 " failed, %" PRIu64 " in flight", summary.ok,
        summary.errors, in_flight);
}

/* While no job comes, no other stage drops them. */
static void drop_idle_residents(struct stages *stages, uint64_t *due_ns) {
    uint64_t now_ns = clock_ns();
    if (stages->residents == NULL || now_ns < *due_ns) return;
    *due_ns = now_ns + IDLE_MS * 1000000ull;
    residents_drop_idle(stages->residents, now_ns);
}

/* Why the worker is not ready, for tools: jobs wait for trouble of its own. */
static void show_trouble(struct stages *stages, bool *is_shown) {
    const char *trouble = blobs_trouble(stages->blobs);
    bool is_ready = trouble[0] == 0 || retries_count(stages->retries) == 0;
    if (is_ready != *is_shown) return;
    *is_shown = !is_ready;
    state_set_trouble(stages->state, is_ready ? "" : trouble);
    log_event(is_ready ? LOG_INFO : LOG_WARN, LOG_EVENT(is_ready ? "ready" : "not_ready"), "%s%s",
        is_ready ? "ready again" : "not ready: ", is_ready ? "" : trouble);
}

/* For tools. What a group gives and takes, it does within poll(). */
static void show_group(struct stages *stages, enum state_group *shown) {
    static const enum state_group groups[] = {[SOURCE_GROUP_NONE] = STATE_GROUP_NOT_ASKED,
        [SOURCE_GROUP_NO_BROKER] = STATE_GROUP_NO_BROKER,
        [SOURCE_GROUP_JOINING] = STATE_GROUP_JOINING,
        [SOURCE_GROUP_MEMBER] = STATE_GROUP_MEMBER,
        [SOURCE_GROUP_AWAY] = STATE_GROUP_AWAY};
    enum state_group group = groups[stages->source->group];
    if (group == STATE_GROUP_MEMBER && !control_has_caught_up(stages->control))
        group = STATE_GROUP_UNKNOWN;
    if (group == *shown) return;
    *shown = group;
    state_set_group(stages->state, group);
}

/* Messages that are taken together: the source had them at hand. */
struct group {
    size_t count;
    uint64_t bytes;
    struct delivery *deliveries[STAGES_GROUP_MAX];
};

/* Waits for the first message alone. */
static enum err poll_group(struct stages *stages, struct room room, int timeout_ms,
    struct group *group, bool *at_end, struct error *err) {
    struct delivery *delivery = NULL;
    do {
        enum err code =
            source_poll(stages->source, group->count == 0 ? timeout_ms : 0, &delivery, at_end, err);
        if (code != ERR_OK) return code;
        if (delivery == NULL) return ERR_OK;
        INVARIANT(group->count < STAGES_GROUP_MAX, "room is for STAGES_GROUP_MAX messages at most");
        group->deliveries[group->count++] = delivery;
        group->bytes += delivery->held_bytes;
    } while (group->count < room.jobs && group->bytes < room.bytes);
    return ERR_OK;
}

static void pass_on(struct stages *stages, const struct group *group) {
    struct delivery *deliveries[STAGES_GROUP_MAX];
    size_t count = 0;
    size_t reserved = flight_begin(&stages->flight, group->count, group->bytes);
    for (size_t i = 0; i < group->count; i++) {
        group->deliveries[i]->reserved_bytes = reserved;
        group->deliveries[i]->held_bytes += reserved;
    }
    for (size_t i = 0; i < group->count; i++)
        if (suspects_pass(stages->suspects, group->deliveries[i]))
            deliveries[count++] = group->deliveries[i];
    admission_take(stages->admission, deliveries, count);
}

/* Suspects, one by one, and what the source brought behind them. */
static void admit_waiting(struct stages *stages) {
    struct delivery *delivery;
    while ((delivery = suspects_take(stages->suspects)) != NULL)
        admission_take(stages->admission, &delivery, 1);
}

static enum err take(
    struct stages *stages, struct room room, int timeout_ms, bool *at_end, struct error *err) {
    struct group group = {.count = 0};
    if (admission_is_due(stages->admission)) timeout_ms = 0;
    enum err code = poll_group(stages, room, timeout_ms, &group, at_end, err);
    if (group.count > 0) pass_on(stages, &group);
    else admission_help(stages->admission);
    return code;
}

static enum err take_all(struct stages *stages, struct error *err) {
    bool is_paused = false, at_end = false, is_trouble_shown = false;
    struct progress progress = {.due_ns = clock_ns() + PROGRESS_MS * 1000000ull};
    enum state_group shown_group = STATE_GROUP_UNKNOWN;
    uint64_t idle_ns = 0;
    enum err code = ERR_OK;
    while (code == ERR_OK && !stages_must_stop(stages) && !stages_has_failed(stages)) {
        struct room room = {.jobs = 1}; /* for what a paused source had fetched already */
        bool has_room = wait_for_room(stages, is_paused, &room);
        if (has_room == is_paused) {
            is_paused = !has_room;
            source_pause(stages->source, is_paused);
        }
        state_heartbeat(stages->state);
        pulse_busy();
        admit_waiting(stages);
        if (at_end) suspects_note_end(stages->suspects);
        if (at_end && !suspects_are_waiting(stages->suspects)) break;
        if (is_paused || room.jobs > 0)
            code = take(stages, room, is_paused ? 0 : POLL_MS, &at_end, err);
        log_progress(stages, &progress);
        show_trouble(stages, &is_trouble_shown);
        show_group(stages, &shown_group);
        drop_idle_residents(stages, &idle_ns);
    }
    flight_note_complete(
        &stages->flight, code == ERR_OK && at_end && !suspects_are_waiting(stages->suspects));
    suspects_drop_waiting(stages->suspects);
    return code;
}

/* Jobs that have not begun are others' to run, and so are those that wait to be tried again. */
static void hand_back(struct stages *stages) {
    /* relaxed: see is_stopping() of flow.c */
    atomic_store_explicit(&stages->hands_back, true, memory_order_relaxed);
    size_t count = retries_hand_back_all(stages->retries);
    if (count > 0) log_line(LOG_INFO, "handed back %zu jobs that waited for another try", count);
}

/* The source is still polled: it serves its group and commits. What it brings is not ours any more.
 */
static enum err drain(struct stages *stages, struct error *err) {
    bool at_end = false;
    uint64_t stopped_ns = 0;
    source_pause(stages->source, true);
    admission_help(stages->admission);
    while (flight_messages(&stages->flight) > 0 && !stages_has_failed(stages)) {
        if (stopped_ns == 0 && stages_must_stop(stages)) {
            stopped_ns = clock_ns();
            log_line(
                LOG_INFO, "stopping: %" PRIu64 " jobs in flight", flight_messages(&stages->flight));
            hand_back(stages);
        }
        if (stopped_ns != 0) ordering_hand_back(stages, NULL, 0);
        uint64_t limit_ns = stages->settings->drain_timeout_ms * 1000000ull;
        if (stopped_ns != 0 && clock_ns() - stopped_ns > limit_ns)
            return error_set(err, ERR_TIMEOUT, 0, "raise drain_timeout_ms",
                "%" PRIu64 " jobs were still running %" PRIu32 " ms after the signal to stop",
                flight_messages(&stages->flight), stages->settings->drain_timeout_ms);
        struct delivery *delivery = NULL;
        state_heartbeat(stages->state);
        pulse_busy();
        enum err code = source_poll(stages->source, 0, &delivery, &at_end, err);
        delivery_destroy(delivery);
        if (code != ERR_OK) return code;
        flight_lock(&stages->flight);
        if (stages->flight.messages > 0) flight_wait(&stages->flight, DRAIN_POLL_MS);
        flight_unlock(&stages->flight);
    }
    return ERR_OK;
}

enum err intake_run(struct stages *stages, struct error *err) {
    pulse_start("intake");
    enum err code = take_all(stages, err);
    if (code != ERR_OK) hand_back(stages); /* a member that its group has lost */
    struct error drain_error;
    enum err drained = drain(stages, code == ERR_OK ? err : &drain_error);
    pulse_idle();
    return code == ERR_OK ? drained : code;
}

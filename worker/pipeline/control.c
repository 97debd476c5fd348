#include "pipeline/control.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/log_limit.h"
#include "base/pulse.h"
#include "pipeline/cancels.h"
#include "pipeline/retries.h"
#include "state/crash.h"

enum { POLL_MS = 100, LATE_MS = 30000 };

struct control {
    struct stages *stages;
    struct reader *reader; /* the thread's, once that runs */
    struct cancels *cancels;
    uint64_t late_due_ns; /* when the next line says that the topic is not read to its end */
    struct crew *crew;
    atomic_bool is_stopped, has_caught_up;
};

static void log_refused(const struct delivery *delivery, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_OF_SENDERS;
    const struct position *position = &delivery->position;
    uint64_t left_out;
    if (!log_limit_take(&limit, clock_ns(), &left_out)) return;
    if (left_out > 0)
        log_line(LOG_WARN, "%" PRIu64 " more control messages ignored, without a line", left_out);
    const struct log_fields fields = {.event = "control_ignored",
        .code = err_code(err->code),
        .topic = position->topic,
        .partition = position->partition,
        .offset = position->offset};
    log_event(LOG_WARN, &fields, "control message ignored: %s/%" PRId32 "/%" PRId64 ": %s; %s",
        position->topic, position->partition, position->offset, err->message, err->fix);
}

static void log_forgot(void) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    if (log_limit_take(&limit, clock_ns(), NULL))
        log_line(LOG_WARN, "cancels.ids_max is reached: the oldest cancels are forgotten before "
                           "cancels.ttl_ms is over");
}

static void log_trouble(const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    if (log_limit_take(&limit, clock_ns(), NULL))
        log_error(LOG_WARN, "the control topic cannot be read", err);
}

/* A clock that is ahead of ours, or none, makes no cancel live longer. */
static uint64_t cancelled_ms(const struct delivery *delivery, uint64_t now_ms) {
    uint64_t published_ms = delivery->position.published_unix_ms;
    return published_ms != 0 && published_ms < now_ms ? published_ms : now_ms;
}

static void take(struct control *control, const struct delivery *delivery) {
    struct error err;
    struct control_message message;
    bool forgot = false;
    uint64_t now_ms = clock_unix_ms();
    enum err code = control_message_decode(delivery->payload, &message, &err);
    if (code == ERR_OK)
        code = cancels_add(
            control->cancels, &message, cancelled_ms(delivery, now_ms), now_ms, &forgot, &err);
    if (code != ERR_OK) log_refused(delivery, &err);
    else
        log_event(LOG_DEBUG, &(struct log_fields){.event = "cancelled", .job = message.id},
            "%s: %.*s", message.action == CONTROL_STOP ? "to stop" : "cancelled",
            SLICE_TEXT(message.id));
    if (forgot) log_forgot();
}

/* False: nothing came. */
static bool take_next(struct control *control) {
    struct delivery *delivery;
    struct error err;
    pulse_busy();
    if (reader_poll(control->reader, POLL_MS, &delivery, &err) != ERR_OK) log_trouble(&err);
    if (delivery == NULL) return false;
    take(control, delivery);
    delivery_destroy(delivery);
    return true;
}

static void log_late(struct control *control) {
    if (clock_ns() < control->late_due_ns) return;
    control->late_due_ns = clock_ns_in(LATE_MS);
    log_line(LOG_WARN, "the control topic is not read to its end yet, and no job is taken before: "
                       "check that the brokers can be reached, and that it may be read");
}

/* The intake waits for it. */
static void check_caught_up(struct control *control) {
    if (atomic_load_explicit(&control->has_caught_up, memory_order_relaxed)) return; /* ours */
    bool has_caught_up = reader_has_caught_up(control->reader);
    /* release: pairs with the acquire in control_has_caught_up() */
    atomic_store_explicit(&control->has_caught_up, has_caught_up, memory_order_release);
    if (!has_caught_up) log_late(control);
}

static void run_control(void *context, uint32_t index) {
    crash_is_no_evidence();
    struct control *control = context;
    /* relaxed: it only ends the loop */
    while (!atomic_load_explicit(&control->is_stopped, memory_order_relaxed)) {
        check_caught_up(control);
        if (take_next(control)) retries_check_wanted(control->stages->retries);
    }
}

enum err control_start(
    struct stages *stages, struct reader *reader, struct control **ret, struct error *err) {
    if (reader == NULL) return ERR_OK;
    const struct settings *settings = stages->settings;
    struct control *control = calloc(1, sizeof *control);
    if (control != NULL)
        control->cancels = cancels_create(settings->cancels.ids_max, settings->cancels.ttl_ms);
    if (control == NULL || control->cancels == NULL) {
        reader_destroy(reader);
        free(control);
        return error_no_memory(err, "no memory for what the control topic cancels");
    }
    control->stages = stages;
    control->reader = reader;
    control->late_due_ns = clock_ns_in(LATE_MS);
    const struct crew_options crew = {
        .name = "control", .count = 1, .run = run_control, .context = control};
    enum err code = crew_start(&crew, &control->crew, err);
    if (code == ERR_OK) *ret = control;
    else control_stop(control);
    return code;
}

void control_stop(struct control *control) {
    if (control == NULL) return;
    /* relaxed: as above */
    atomic_store_explicit(&control->is_stopped, true, memory_order_relaxed);
    crew_join(&control->crew);
    reader_destroy(control->reader);
    cancels_destroy(control->cancels);
    free(control);
}

bool control_has_caught_up(const struct control *control) {
    /* acquire: pairs with the release in check_caught_up() */
    return control == NULL || atomic_load_explicit(&control->has_caught_up, memory_order_acquire);
}

enum control_action control_find(const struct control *control, struct slice id) {
    return control != NULL ? cancels_find(control->cancels, id, clock_unix_ms()) : CONTROL_NONE;
}

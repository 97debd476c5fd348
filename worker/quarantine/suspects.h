/**
 * Suspects: messages that an executor had in hand when it died (attribution.h), or may have had if
 * its state is lost (then the source says so). Each suspect runs alone: it is admitted when
 * everything before it is answered, and nothing else is admitted until it is answered, so a death
 * in between was caused by it. While it is the turn of suspects (turns.h), they and the messages
 * that the source delivers after them wait here in order. While it is not, other messages go on,
 * but for those of a key that is held; and where jobs of a key run in order, those that stand
 * behind a suspect of their key. Convicted messages are not run again.
 *
 * Each death while a message ran alone counts against its key (suspensions.h): a conviction, and
 * each that the search for an array's culprits costs.
 *
 * Lifetime: suspects_start() to suspects_stop(). Without a state file there is no struct suspects:
 * NULL is fine everywhere, and no message is a suspect. Threads: each function says which.
 */
#ifndef QUARANTINE_SUSPECTS_H
#define QUARANTINE_SUSPECTS_H

#include <pthread.h>

#include "broker/delivery.h"
#include "quarantine/suspensions.h"
#include "state/state.h"

struct suspects;

/** Except for `uuid`, what it points to outlives the suspects. */
struct suspects_options {
    struct state *state;      /* NULL: there is no state file */
    struct state_shape shape; /* with device and uuid: for the new life */
    uint32_t device;
    const char *uuid;
    struct suspension_rules rules;
    bool keeps_key_order;    /* jobs of a key run in order */
    pthread_mutex_t *lock;   /* of what is in flight; guards the table of suspects as well */
    pthread_cond_t *changed; /* a suspect is answered, or handed back: another may have its turn */
    const uint64_t *in_flight; /* messages, including those that wait here; under the lock */
    /**
     * With the lock held: jobs that rest between two turns on the device stay as they are, or go
     * on. Returns how many messages in flight rest, while they stay.
     */
    uint64_t (*park)(void *context, bool are_parked);
    /** Ends the loan of a message that has to wait. False: the message is dropped, and the run
     * fails.
     */
    bool (*keep)(void *context, struct delivery *delivery);
    /** Drops a message that waited: it is read again later. Called without the lock. */
    void (*drop)(void *context, struct delivery *delivery);
    void *context;
};

/**
 * Attributes the death of the last life, logs the outcome, and begins a new life. `ret` stays NULL
 * without a state. ERR_NO_MEMORY, and codes of state_begin().
 */
MUST_CHECK enum err suspects_start(
    const struct suspects_options *options, struct suspects **ret, struct error *err);

/**
 * Drops the messages that wait. `is_lost`: the device is lost, so the note about the message that
 * ran alone stays.
 */
void suspects_stop(struct suspects *suspects, bool is_lost);

/** False: the message, owned from now on and not lent any more, waits for its turn. Intake thread.
 */
MUST_CHECK bool suspects_pass(struct suspects *suspects, struct delivery *delivery);

/** Takes the next message whose turn has come; NULL: none. Intake thread. */
struct delivery *suspects_take(struct suspects *suspects);

bool suspects_are_waiting(const struct suspects *suspects); /* intake thread */
/** How many wait since their key is, or was, held. Intake thread. */
size_t suspects_count_held(const struct suspects *suspects);
/** With the lock held: suspects_take() has something. Intake thread. */
bool suspects_can_take(struct suspects *suspects);
/** With the lock held: a suspect runs, or is to run once no other message is in flight, so that
 * none is to be brought. Intake thread. */
bool suspects_have_turn(struct suspects *suspects);
/** The source is at its end: suspects give way to nobody any more. Intake thread. */
void suspects_note_end(struct suspects *suspects);

/** Drops the messages that wait: they are read again later. Intake thread, when the run stops. */
void suspects_drop_waiting(struct suspects *suspects);

enum verdict { VERDICT_NONE, VERDICT_GUILTY, VERDICT_UNDECODABLE };

/** Whether anything is known of any message; once false, it stays false. Intake thread. */
bool suspects_are_known(const struct suspects *suspects);

/**
 * What is known of a message before it is decoded; `err` says what it did. Intake thread, or any
 * thread that got the message while nothing was known of any message.
 */
enum verdict suspects_verdict(
    const struct suspects *suspects, const struct position *position, struct error *err);

/**
 * True only once for each conviction, over all lives, because a message may be read again. Threads:
 * as suspects_verdict().
 */
MUST_CHECK bool suspects_count_conviction(
    struct suspects *suspects, const struct position *position);

/** A job of the key ended an executor while it ran alone: counts that, and holds the key's
 * messages. Intake thread. */
void suspects_count_death(
    struct suspects *suspects, const struct suspension_rules *rules, struct slice key);

/** With how many others, itself included, the message that runs alone was in a batch that the
 * watchdog ended; 0: in none. The thread that runs it. */
uint32_t suspects_hung_with(const struct suspects *suspects);

/** A long job: in one of the first so many rounds it may have ended the executor. The thread that
 * runs it alone. */
uint64_t suspects_rounds(const struct suspects *suspects);

/** The message that runs alone is innocent before it is answered: it runs beside others from now
 * on, as any does, and is_suspect no more. The thread that runs it. */
void suspects_acquit(struct suspects *suspects, struct delivery *delivery);

/** The message that runs alone was decoded into a job. Intake thread. */
void suspects_decoded(struct suspects *suspects, const struct delivery *delivery);

/** The suspect was answered: it is innocent, or its fault harmed no other job. An array's culprits
 * are known until its answer is committed. Any thread. */
void suspects_answered(struct suspects *suspects);

/** The suspect was handed back without an answer; it runs when it is read again. Any thread. */
void suspects_handed_back(struct suspects *suspects);

/** Forgets messages below `next`: they are not read again. A source_on_committed; any thread. */
void suspects_on_committed(void *suspects, const char *topic, int32_t partition, int64_t next);

/** The answers to `count` suspects are published. Any thread. */
void suspects_published(struct suspects *suspects, uint64_t count);

#endif

/**
 * Suspects: messages that an executor had in hand when it died (attribution.h), or that executors
 * whose state is lost may have had (the source says so of a delivery). Each runs alone: it is
 * admitted once everything before it is answered, and nothing is admitted until it is answered
 * itself; so a death in between is its own. What waits for that, the suspect and what the source
 * brought behind it, waits here in order. Convicted messages are not run again.
 *
 * Lifetime: suspects_start() to suspects_stop(). Without a state file there is no struct suspects:
 * NULL is fine everywhere, and every message is innocent. Threads: as each function says.
 */
#ifndef QUARANTINE_SUSPECTS_H
#define QUARANTINE_SUSPECTS_H

#include <pthread.h>

#include "broker/delivery.h"
#include "state/state.h"

struct suspects;

/** Except for `uuid`, what it points to outlives the suspects. */
struct suspects_options {
    struct state *state;      /* NULL: none is kept */
    struct state_shape shape; /* with device and uuid: of the life that begins */
    uint32_t device;
    const char *uuid;
    pthread_mutex_t *lock;   /* of what is in flight; guards the table of suspects as well */
    pthread_cond_t *changed; /* a suspect is answered, or handed back: another may have its turn */
    const uint64_t *in_flight; /* messages, with those that wait here; under the lock */
    /** Ends the loan of a message that is to wait. False: it is dropped already, and the run fails.
     */
    bool (*keep)(void *context, struct delivery *delivery);
    /** Lets go of one that waited: it comes again. Without the lock. */
    void (*drop)(void *context, struct delivery *delivery);
    void *context;
};

/**
 * Attributes the death of the life before, says in the log what came of it, and begins a new life.
 * `ret` stays NULL without a state. ERR_NO_MEMORY; as state_begin().
 */
MUST_CHECK enum err suspects_start(
    const struct suspects_options *options, struct suspects **ret, struct error *err);

/** Drops what still waits. `is_lost`: the life ends by a lost device, so who runs alone stays so.
 */
void suspects_stop(struct suspects *suspects, bool is_lost);

/** False: the message, owned from now on and not lent any more, waits for its turn. Intake thread.
 */
MUST_CHECK bool suspects_pass(struct suspects *suspects, struct delivery *delivery);

/** The next message whose turn has come; NULL: none. Intake thread. */
struct delivery *suspects_take(struct suspects *suspects);

bool suspects_are_waiting(const struct suspects *suspects); /* intake thread */
/** With the lock held: suspects_take() has something. Intake thread. */
bool suspects_can_take(const struct suspects *suspects);

/** Lets go of what waits: it comes again. Intake thread, when the run stops. */
void suspects_drop_waiting(struct suspects *suspects);

enum verdict { VERDICT_NONE, VERDICT_GUILTY, VERDICT_UNDECODABLE };

/** Whether anything is known of any message; once not, never again. Intake thread. */
bool suspects_are_known(const struct suspects *suspects);

/** What is known of a message before it is decoded; `err` says what it did. Intake thread; any
 * other that got the message once nothing was known. */
enum verdict suspects_verdict(
    const struct suspects *suspects, const struct position *position, struct error *err);

/** True once for each conviction, over all lives: its message may come again. As the verdict. */
MUST_CHECK bool suspects_count_conviction(
    struct suspects *suspects, const struct position *position);

/** The message that runs alone was decoded, and is a job. Intake thread. */
void suspects_decoded(struct suspects *suspects, const struct delivery *delivery);

/** It was answered: innocent, or at fault in a way that cost nobody else anything. Any thread. */
void suspects_answered(struct suspects *suspects);

/** It comes again instead of being answered, and is tried again then. Any thread. */
void suspects_handed_back(struct suspects *suspects);

/** Forgets what stands below `next`: it does not come again. A source_on_committed; any thread. */
void suspects_on_committed(void *suspects, const char *topic, int32_t partition, int64_t next);

/** With the lock held: what answers `count` suspects is published. Any thread. */
void suspects_published(struct suspects *suspects, uint64_t count);

#endif

/**
 * Suspects: messages that an executor had in hand when it died (state/inquest.h), or executors
 * whose state is lost may have had (the source says so of a delivery). Each runs alone: it is
 * admitted once everything before it is answered, and nothing is admitted until it is answered
 * itself; so a death in between is its own. What waits for that, the suspect and what the source
 * brought behind it, waits here in order. Convicted messages are not run again. Private to
 * pipeline/.
 *
 * Lifetime: suspects_start() to suspects_stop(). Without a state file there is no struct suspects:
 * NULL is fine everywhere, and every message is innocent. Threads: as each function says.
 */
#ifndef PIPELINE_SUSPECTS_H
#define PIPELINE_SUSPECTS_H

#include "pipeline/stages.h"

/** Holds the inquest on the life before, says what came of it, and begins a new one. */
MUST_CHECK enum err suspects_start(struct stages *stages, struct suspects **ret, struct error *err);

/** Drops what still waits. */
void suspects_stop(struct suspects *suspects);

/** False: the message, owned from now on and not lent any more, waits for its turn. Intake thread.
 */
MUST_CHECK bool suspects_pass(struct suspects *suspects, struct delivery *delivery);

/** The next message whose turn has come; NULL: none. Intake thread. */
struct delivery *suspects_take(struct suspects *suspects);

bool suspects_are_waiting(const struct suspects *suspects); /* intake thread */
/** With the stages' lock held: suspects_take() has something. Intake thread. */
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

/** With the stages' lock held: what answers `count` suspects is published. Any thread. */
void suspects_published(struct suspects *suspects, uint64_t count);

#endif

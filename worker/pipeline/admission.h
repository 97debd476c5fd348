/**
 * From bytes to jobs that can go on: decoding, the checks that need no plan, key order, planning.
 * Private to pipeline/.
 *
 * The intake admits a few messages itself, and runs their jobs if these are short (batch/lane.h).
 * It offers many messages, or large ones, to the lanes (batch/ready.h): what a lane has admitted it
 * can run at once. While no lane waits for work, admission threads do it, so that lanes are fed
 * while they are busy with the device. The intake helps when it has nothing else to do. With
 * `ordering: key` it admits all messages: they must enter the key queues in the order in which they
 * came.
 *
 * Lifetime: admission_start() to admission_destroy(). Threads: the intake's, but for
 * admission_admit().
 */
#ifndef PIPELINE_ADMISSION_H
#define PIPELINE_ADMISSION_H

#include "pipeline/stages.h"

MUST_CHECK enum err admission_start(
    struct stages *stages, struct admission **ret, struct error *err);

/** Admits messages that came together, STAGES_GROUP_MAX at most, or offers them to the lanes. Owns
 * them. */
void admission_take(struct admission *admission, struct delivery *const *deliveries, size_t count);

/** Whether messages may wait that no lane has claimed. */
bool admission_is_due(const struct admission *admission);

/** Admits what waits; drops it after a failure. */
void admission_help(struct admission *admission);

/** Admits messages that a lane has claimed (lanes_options.admit); `context` is struct stages. */
void admission_admit(void *context, size_t count);

/** Admits what waits, and ends the threads. Before key_order_finish(). NULL is fine. */
void admission_finish(struct admission *admission);

/** After the lanes have stopped. NULL is fine. */
void admission_destroy(struct admission *admission);

#endif

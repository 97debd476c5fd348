/**
 * From bytes to jobs that can go on: decoding, the checks that need no plan, key order, planning.
 * Private to pipeline/.
 *
 * The thread that took a few messages admits them itself. When many messages come, admission
 * threads share them, so that one processor does not limit the worker. With `ordering: key` they do
 * not: messages must enter the key queues in the order in which they came.
 *
 * Lifetime: admission_start() to admission_destroy(). Threads: as each function says.
 */
#ifndef PIPELINE_ADMISSION_H
#define PIPELINE_ADMISSION_H

#include "pipeline/stages.h"

MUST_CHECK enum err admission_start(
    struct stages *stages, struct admission **ret, struct error *err);

/** Admits messages that came together, STAGES_GROUP_MAX at most, now or later. Owns them. Intake
 * thread only. */
void admission_take(struct admission *admission, struct delivery *const *deliveries, size_t count);

/** Admits what was taken, or drops it after a failure, and ends the threads. Before
 * key_order_finish(). NULL is fine. */
void admission_destroy(struct admission *admission);

#endif

/** The intake: polls the source, passes messages on, and pauses when enough is in flight. */
#ifndef PIPELINE_INTAKE_H
#define PIPELINE_INTAKE_H

#include "pipeline/stages.h"

/**
 * Takes messages until the source ends or fails, `stop` is set or the stages have failed; then
 * waits for what is in flight. Jobs that have not begun are handed back after `stop`, and where a
 * source with a group failed. ERR_TIMEOUT when a drain after `stop` takes longer than
 * drain_timeout_ms; codes of the source.
 */
MUST_CHECK enum err intake_run(struct stages *stages, struct error *err);

#endif

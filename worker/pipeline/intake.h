/** The intake: polls the source, passes messages on, and pauses when enough is in flight. */
#ifndef PIPELINE_INTAKE_H
#define PIPELINE_INTAKE_H

#include "pipeline/stages.h"

/**
 * Takes messages until the source ends, `stop` is set or the stages have failed; then waits for
 * what is in flight. ERR_TIMEOUT when a drain after `stop` takes longer than drain_timeout_ms.
 */
MUST_CHECK enum err intake_run(struct stages *stages, struct error *err);

#endif

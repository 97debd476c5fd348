/** Traces of jobs, where the settings name a collector. Private to pipeline/. */
#ifndef PIPELINE_TRACING_H
#define PIPELINE_TRACING_H

#include "pipeline/stages.h"

/** Starts nothing where tracing.otlp_url is empty. */
MUST_CHECK enum err tracing_start(struct stages *stages, struct error *err);
void tracing_stop(struct stages *stages);

#endif

/**
 * Everything the worker counts, wherever it is counted, and how things stand. Private to executor/.
 *
 * Threads: any one at a time, from stages_start() on and until the stages' services are destroyed.
 */
#ifndef EXECUTOR_CENSUS_H
#define EXECUTOR_CENSUS_H

#include "executor/stages.h"
#include "telemetry/report.h"

/** Sums since the start. Maxima are zero: counters_take_maxima(). */
void census_totals(struct stages *stages, struct totals *ret);

struct gauges census_gauges(struct stages *stages);

/** Its topic lives as long as the source. */
struct oldest_unfinished census_oldest(struct stages *stages);

#endif

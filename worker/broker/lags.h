/**
 * How far a consumer is behind, by partition. Only for consumer.c. Threads: any.
 */
#ifndef BROKER_LAGS_H
#define BROKER_LAGS_H

#include "broker/source.h"

/** What was taken and has not finished. */
void lags_get_totals(const struct source *source, struct offsets_totals *ret);

/**
 * Visits the partitions that are followed. Their ends are those that librdkafka's statistics would
 * show: as its last fetches have said, so that asking costs no request. Those of a partition that
 * is paused may be old.
 */
void lags_each(const struct source *source, source_visit_partition *visit, void *context);

#endif

/** The lag of a consumer, for each partition. Only for consumer.c. Threads: any. */
#ifndef BROKER_LAGS_H
#define BROKER_LAGS_H

#include "broker/source.h"

/** Totals of messages that were taken and are not finished. */
void lags_get_totals(const struct source *source, struct offsets_totals *ret);

/**
 * Visits the partitions that are followed. The end of a partition is the one that the client's last
 * fetch returned, so no request is needed; it may be old while the partition is paused.
 */
void lags_each(const struct source *source, source_visit_partition *visit, void *context);

#endif

/**
 * Everything the worker counts, wherever it is counted, and how things stand.
 *
 * Lifetime: what it collects from outlives the last reading. Threads: any one at a time.
 */
#ifndef METRICS_COLLECTOR_H
#define METRICS_COLLECTOR_H

#include "broker/source.h"
#include "gpu/lease.h"
#include "gpu/modules.h"
#include "gpu/pool.h"
#include "gpu/residents.h"
#include "gpu/statics.h"
#include "metrics/report.h"

/** Where it is counted. Filled in by who owns the services. */
struct collector {
    struct counters *counters;
    struct source *source;
    struct pool_books device_books, pinned_books; /* of the threads */
    struct statics *statics;
    struct residents *residents; /* NULL: none are kept */
    struct modules *modules;
    struct lease_pool *leases;
    /** Fills in the gauges of jobs and messages that are under way. */
    void (*read_in_flight)(void *context, struct gauges *ret);
    void *context;
};

/** Sums since the start. Maxima are zero: counters_take_maxima(). */
void collector_read_totals(const struct collector *collector, struct totals *ret);

struct gauges collector_read_gauges(const struct collector *collector);

/** Its topic lives as long as the source. */
struct oldest_unfinished collector_read_oldest(struct source *source);

#endif

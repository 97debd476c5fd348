/**
 * Reads every counter and gauge of the worker, wherever it is kept.
 *
 * Lifetime: what it reads from must outlive the last reading. Threads: any, one at a time.
 */
#ifndef METRICS_COLLECTOR_H
#define METRICS_COLLECTOR_H

#include "broker/source.h"
#include "gpu/lease.h"
#include "gpu/modules.h"
#include "gpu/pool.h"
#include "gpu/residents.h"
#include "gpu/statics.h"
#include "metrics/panel.h"

/** Where counters and gauges are kept. The owner of these services fills it in. */
struct collector {
    struct counters *counters;
    struct source *source;
    struct pool_books device_books, pinned_books; /* of the threads */
    struct statics *statics;
    struct residents *residents; /* NULL: there are no residents */
    struct modules *modules;
    struct lease_pool *leases;
    const struct budget *device_budget, *pinned_budget;
    uint64_t statics_budget_bytes;
    /** Fills in the gauges of jobs and messages in flight. */
    void (*read_in_flight)(void *context, struct gauges *ret);
    void *context;
};

/** Reads sums since the start. Maxima are zero; see counters_take_maxima(). */
void collector_read_totals(const struct collector *collector, struct totals *ret);

struct gauges collector_read_gauges(const struct collector *collector);

/** Reads the partitions that are followed now. Those that `ret` has no room for are counted there.
 */
void collector_read_partitions(struct source *source, struct panel_view *ret);

/** The message that has held up a commit longest. Its topic lives as long as the source. */
struct oldest_unfinished collector_read_oldest(struct source *source);

#endif

/**
 * How things stand in an executor, as it shows it once a second. It lies in memory that processes
 * may share (board.h). It has two sides: one is shown while the other is written, so that a writer
 * who dies leaves the one that is whole.
 *
 * Lifetime: of the memory, which begins zeroed. Threads: one writes; any reads, also of another
 * process.
 */
#ifndef METRICS_PANEL_H
#define METRICS_PANEL_H

#include <stdatomic.h>

#include "metrics/report.h"

enum { PANEL_PARTITIONS_MAX = 256, PANEL_TOPIC_BYTES = 256, PANEL_NAME_BYTES = 96 };

struct panel_partition {
    char topic[PANEL_TOPIC_BYTES];
    int32_t partition;
    int64_t lag;         /* messages that are not finished, taken or not; -1: not known yet */
    uint64_t unfinished; /* of them, those that were taken */
    uint64_t oldest_ns;  /* for how long the lowest of these holds up commits; 0: there is none */
};

struct panel_view {
    uint64_t shown_ns; /* clock_ns(); 0: nothing was shown yet */
    char device[PANEL_NAME_BYTES];
    struct totals totals; /* of all lives; those of counters.h itself are there, and newer */
    struct gauges gauges;
    uint64_t device_budget_bytes, pinned_budget_bytes, statics_budget_bytes;
    uint32_t partition_count;
    uint32_t partitions_left_out; /* there was no room for them */
    struct panel_partition partitions[PANEL_PARTITIONS_MAX];
};

/** Only panel.c reads it. */
struct panel {
    _Atomic uint64_t shown; /* how often; the last is at the side of that number */
    struct panel_view sides[2];
};

/** The side to write, as it was two views ago. */
struct panel_view *panel_begin(struct panel *panel);

/** Shows what was written. */
void panel_show(struct panel *panel);

/** The last one. False: nothing was shown, or it changed while it was read. */
MUST_CHECK bool panel_read(struct panel *panel, struct panel_view *ret);

#endif

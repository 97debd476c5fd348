/**
 * An executor's gauges and totals, which it updates once a second. The panel is in memory that
 * processes may share (board.h). It has two sides: one is shown while the other is written, so that
 * a writer that dies leaves one complete side.
 *
 * Lifetime: that of the memory, which must be zeroed at first. Threads: one writes; any may read,
 * also of another process.
 */
#ifndef METRICS_PANEL_H
#define METRICS_PANEL_H

#include <stdatomic.h>

#include "gpu/usage.h"
#include "metrics/report.h"

enum { PANEL_PARTITIONS_MAX = 256, PANEL_TOPIC_BYTES = 256, PANEL_NAME_BYTES = 96 };

struct panel_partition {
    char topic[PANEL_TOPIC_BYTES];
    int32_t partition;
    int64_t lag; /* messages that are not finished, whether taken or not; -1: not known yet */
    uint64_t unfinished; /* those of them that were taken */
    uint64_t oldest_ns;  /* for how long the lowest of them has held up commits; 0: there is none */
};

struct panel_view {
    uint64_t shown_ns; /* clock_ns(); 0: nothing was shown yet */
    char device[PANEL_NAME_BYTES];
    struct totals totals; /* of all lives; the counters (counters.h) have newer values */
    struct gauges gauges;
    struct usage_reading usage; /* of the device */
    uint64_t device_budget_bytes, pinned_budget_bytes, statics_budget_bytes;
    uint32_t partition_count;
    uint32_t partitions_left_out; /* partitions for which there was no room */
    struct panel_partition partitions[PANEL_PARTITIONS_MAX];
};

/** Only panel.c reads it. */
struct panel {
    _Atomic uint64_t shown; /* how often a view was shown; its parity is the side that is shown */
    struct panel_view sides[2];
};

/** Returns the side to write, with its contents of two views ago. */
struct panel_view *panel_begin(struct panel *panel);

/** Shows the side that was written. */
void panel_show(struct panel *panel);

/** Reads the last view. False: none was shown yet, or it changed while it was read. */
MUST_CHECK bool panel_read(struct panel *panel, struct panel_view *ret);

#endif

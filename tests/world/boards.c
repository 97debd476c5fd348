#include "world/boards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "metrics/board.h"
#include "world/cluster.h"

enum {
    DEVICE_BYTES = 131072,  /* of its two lanes */
    PINNED_BYTES = 4456448, /* of them, and of what results leave from */
};

static bool has_given_back(const struct gauges *gauges) {
    uint64_t kept = gauges->statics_cached_bytes + gauges->resident_bytes;
    return gauges->device_pool_live_bytes == DEVICE_BYTES + kept &&
           gauges->pinned_pool_live_bytes == PINNED_BYTES;
}

static bool is_idle(const struct gauges *gauges) {
    return gauges->jobs_in_flight == 0 && gauges->bytes_in_flight == 0 && gauges->jobs_ready == 0 &&
           gauges->jobs_starved == 0 && gauges->jobs_retrying == 0;
}

/* A static member keeps those that a topic no longer has, since it was made anew. */
static bool is_gone(const struct panel_partition *partition) {
    return partition->partition >= cluster_find_topic(WORLD_JOBS)->partition_count;
}

static bool has_finished(const struct panel_partition *partition) {
    if (is_gone(partition)) return partition->unfinished == 0;
    return strcmp(partition->topic, WORLD_JOBS) == 0 && partition->lag == 0 &&
           partition->unfinished == 0 && partition->oldest_ns == 0;
}

static void tell(const char *name, const struct panel_view *view) {
    const struct gauges *gauges = &view->gauges;
#define X(gauge) fprintf(stderr, "%s: " #gauge " %" PRIu64 "\n", name, gauges->gauge);
    GAUGE_LIST(X)
#undef X
    for (uint32_t i = 0; i < view->partition_count; i++)
        fprintf(stderr, "%s: %s [%" PRId32 "]: lag %" PRId64 ", %" PRIu64 " unfinished\n", name,
            view->partitions[i].topic, view->partitions[i].partition, view->partitions[i].lag,
            view->partitions[i].unfinished);
}

bool boards_show_rest(const struct worker *workers, size_t count, uint64_t since_ns, bool tells) {
    static struct panel_view view;
    int32_t partitions = cluster_find_topic(WORLD_JOBS)->partition_count;
    size_t readers[CLUSTER_PARTITIONS] = {0};
    bool ret = true;
    for (size_t i = 0; i < count; i++) {
        ret = panel_read(&workers[i].board->panel, &view) && view.shown_ns > since_ns && ret;
        bool is_at_rest = is_idle(&view.gauges) && has_given_back(&view.gauges);
        for (uint32_t p = 0; p < view.partition_count; p++) {
            is_at_rest = is_at_rest && has_finished(&view.partitions[p]);
            readers[view.partitions[p].partition]++;
        }
        if (!is_at_rest && tells) tell(workers[i].name, &view);
        ret = ret && is_at_rest;
    }
    for (int32_t p = 0; p < partitions; p++) {
        if (readers[p] != 1 && tells)
            fprintf(stderr, "partition %" PRId32 " has %zu readers\n", p, readers[p]);
        ret = ret && readers[p] == 1;
    }
    return ret;
}

size_t boards_count_answers(const struct worker *workers, size_t count) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    size_t ret = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t p = 0; ledger_read_program(&workers[i].board->ledger, p, name, outcomes); p++)
            for (int code = 0; code < ERR_COUNT; code++) ret += outcomes[code];
    return ret;
}

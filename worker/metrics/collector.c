#include "metrics/collector.h"

#include "base/clock.h"
#include "base/text.h"

enum { BOOKS_MAX = 4 };

/* Adds up the books of the threads, of residents and of statics. */
static struct pool_usage usage_of(const struct collector *collector, enum pool_kind kind) {
    bool is_device = kind == POOL_DEVICE;
    struct pool_books books[BOOKS_MAX] = {
        is_device ? collector->device_books : collector->pinned_books};
    size_t count = 2;
    books[1].counters = is_device ? statics_device_counters(collector->statics, &books[1].count)
                                  : statics_pinned_counters(collector->statics, &books[1].count);
    if (is_device && collector->residents != NULL)
        books[count++] = residents_pool_books(collector->residents);
    struct pool_usage usage = {0};
    struct error err;
    /* Inconsistent books are reported where they are kept; here they show as zeroes. */
    (void)!pool_usage_sum(books, count, &usage, &err);
    return usage;
}

/* Bytes that some of the threads acquired; other threads may have released them. */
static uint64_t acquired_bytes(struct pool_books books) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < books.count; i++)
        bytes += atomic_load_explicit(&books.counters[i].acquired_bytes, memory_order_relaxed);
    return bytes;
}

static void add_pools(const struct collector *collector, struct totals *ret) {
    struct pool_usage device = usage_of(collector, POOL_DEVICE);
    struct pool_usage pinned = usage_of(collector, POOL_PINNED);
    ret->of[COUNTER_engine_device_pool_hits] = device.hits;
    ret->of[COUNTER_engine_device_pool_misses] = device.misses;
    ret->of[COUNTER_engine_pinned_pool_hits] = pinned.hits;
    ret->of[COUNTER_engine_pinned_pool_misses] = pinned.misses;
    ret->of[COUNTER_engine_transient_allocation_bytes] = acquired_bytes(collector->device_books);
    if (collector->residents != NULL)
        ret->of[COUNTER_engine_resident_allocation_bytes] =
            acquired_bytes(residents_pool_books(collector->residents));
}

static void add_statics(const struct collector *collector, struct totals *ret) {
    struct statics_counts counts = statics_read_counts(collector->statics);
    ret->of[COUNTER_engine_static_hits] = counts.hits;
    ret->of[COUNTER_engine_static_misses] = counts.misses;
    ret->of[COUNTER_engine_static_evictions] = counts.evictions;
    ret->of[COUNTER_engine_static_bytes_saved] = counts.saved_bytes;
    struct upload_counts uploads = statics_upload_counts(collector->statics);
    ret->of[COUNTER_engine_host_to_device_bytes] += uploads.bytes;
    ret->of[COUNTER_engine_upload_operations] += uploads.copies;
    ret->of[COUNTER_engine_sync_points] += uploads.fences;
}

void collector_read_totals(const struct collector *collector, struct totals *ret) {
    counters_read(collector->counters, ret);
    add_pools(collector, ret);
    add_statics(collector, ret);
    ret->of[COUNTER_intake_messages_expired] = source_expired_count(collector->source);
    ret->of[COUNTER_group_rebalances] = source_rebalance_count(collector->source);
    struct modules_counts modules = modules_read_counts(collector->modules);
    ret->of[COUNTER_engine_module_hits] = modules.hits;
    ret->of[COUNTER_engine_module_compilations] = modules.compilations;
    ret->of[COUNTER_engine_module_evictions] = modules.evictions;
}

struct gauges collector_read_gauges(const struct collector *collector) {
    struct pool_usage device = usage_of(collector, POOL_DEVICE);
    struct pool_usage pinned = usage_of(collector, POOL_PINNED);
    struct lease_counts leases = lease_pool_counts(collector->leases);
    struct residents_counts residents = {0};
    if (collector->residents != NULL) residents = residents_read_counts(collector->residents);
    struct gauges ret = {.device_pool_live_bytes = device.live_bytes,
        .device_pool_cached_bytes = device.cached_bytes,
        .pinned_pool_live_bytes = pinned.live_bytes,
        .pinned_pool_cached_bytes = pinned.cached_bytes,
        .statics_cached_bytes = statics_read_counts(collector->statics).cached_bytes,
        .residents = residents.count,
        .resident_bytes = residents.bytes,
        .streams_cached = leases.streams,
        .fences_cached = leases.fences,
        .timing_events_cached = leases.timing_events};
    collector->read_in_flight(collector->context, &ret);
    return ret;
}

struct oldest_unfinished collector_read_oldest(struct source *source) {
    struct offsets_totals totals;
    source_get_totals(source, &totals);
    if (totals.unfinished_count == 0) return (struct oldest_unfinished){0};
    return (struct oldest_unfinished){.topic = totals.lowest.topic,
        .partition = totals.lowest.partition,
        .offset = totals.lowest.offset,
        .age_ns = clock_ns() - totals.lowest_since_ns};
}

static void add_partition(void *context, const struct source_partition *partition) {
    struct panel_view *view = context;
    if (view->partition_count == PANEL_PARTITIONS_MAX) {
        view->partitions_left_out++;
        return;
    }
    struct panel_partition *ret = &view->partitions[view->partition_count++];
    uint64_t now_ns = clock_ns();
    bool is_held = partition->unfinished_count > 0 && now_ns > partition->lowest_since_ns;
    text_format(ret->topic, sizeof ret->topic, "%s", partition->topic);
    ret->partition = partition->partition;
    ret->lag = partition->lag;
    ret->unfinished = partition->unfinished_count;
    ret->oldest_ns = is_held ? now_ns - partition->lowest_since_ns : 0;
}

void collector_read_partitions(struct source *source, struct panel_view *ret) {
    ret->partition_count = ret->partitions_left_out = 0;
    source_each_partition(source, add_partition, ret);
}

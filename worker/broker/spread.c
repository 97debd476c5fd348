#include "broker/spread.h"

#include <string.h>

#include "base/invariant.h"

void spread_init(struct spread *spread) {
    memset(spread, 0, sizeof *spread);
    pthread_mutex_init(&spread->lock, NULL);
}

void spread_fini(struct spread *spread) {
    pthread_mutex_destroy(&spread->lock);
}

static uint32_t *unsettled_of(struct spread *spread, int32_t partition) {
    return &spread->unsettled[partition % SPREAD_PARTITIONS];
}

/* The first idle one after the current one ends the search: with many partitions most are idle. */
static int32_t next_of(struct spread *spread, const rd_kafka_topic_t *topic, int32_t count,
    spread_available_fn *is_available) {
    int32_t start = spread->current % count, best = (start + 1) % count;
    uint32_t fewest = UINT32_MAX;
    for (int32_t i = 1; i <= count && fewest > 0; i++) {
        int32_t partition = (int32_t)(((int64_t)start + i) % count);
        uint32_t unsettled = *unsettled_of(spread, partition);
        if (unsettled >= fewest || !is_available(topic, partition)) continue;
        best = partition;
        fewest = unsettled;
    }
    return best;
}

int32_t spread_choose(struct spread *spread, uint64_t now_ns, const rd_kafka_topic_t *topic,
    int32_t count, spread_available_fn *is_available) {
    pthread_mutex_lock(&spread->lock);
    if (now_ns >= spread->turn_until_ns || spread->current >= count) {
        spread->current = next_of(spread, topic, count, is_available);
        spread->turn_until_ns = now_ns + SPREAD_TURN_MS * 1000000ull;
    }
    int32_t partition = spread->current;
    (*unsettled_of(spread, partition))++;
    pthread_mutex_unlock(&spread->lock);
    return partition;
}

void spread_settle(struct spread *spread, int32_t partition) {
    pthread_mutex_lock(&spread->lock);
    uint32_t *unsettled = unsettled_of(spread, partition);
    INVARIANT(*unsettled > 0, "a record is settled only once");
    (*unsettled)--;
    pthread_mutex_unlock(&spread->lock);
}

#include "broker/lags.h"

#include "broker/clients.h"

void lags_get_totals(const struct source *source, struct offsets_totals *ret) {
    offsets_get_totals(consumer_parts(source).offsets, ret);
}

/* -1: the lag is not known yet. */
static int64_t lag_of(const struct source *source, const struct offsets_followed *at) {
    int64_t low = RD_KAFKA_OFFSET_INVALID, end = RD_KAFKA_OFFSET_INVALID;
    int64_t next = at->state.next_commit;
    rd_kafka_resp_err_t code = rd_kafka_get_watermark_offsets(
        consumer_parts(source).client, at->topic, at->partition, &low, &end);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR || low < 0 || end < 0 || next == OFFSET_UNKNOWN)
        return -1;
    if (next < low) next = low; /* messages below `low` are deleted */
    return end > next ? end - next : 0;
}

void lags_each(const struct source *source, source_visit_partition *visit, void *context) {
    struct offsets_followed at;
    for (size_t i = 0; offsets_at(consumer_parts(source).offsets, i, &at); i++) {
        if (!at.is_followed) continue;
        const struct source_partition partition = {.topic = at.topic,
            .partition = at.partition,
            .lag = lag_of(source, &at),
            .unfinished_count = at.state.unfinished_count,
            .lowest_since_ns = at.state.lowest_since_ns};
        visit(context, &partition);
    }
}

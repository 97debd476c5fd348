#include "broker/arrival.h"

#include "base/clock.h"
#include "broker/client.h"

enum {
    FETCH_TIMEOUT_MS = 500, /* of each request to take partitions over */
    FETCH_INTERVAL_MS = 100
};

void arrival_begin(struct arrival *arrival, const rd_kafka_topic_partition_list_t *partitions) {
    *arrival = (struct arrival){.partitions = rd_kafka_topic_partition_list_copy(partitions)};
}

void arrival_take_all(
    struct arrival *arrival, const struct consumer_options *options, struct source *source) {
    rd_kafka_topic_partition_list_t *all =
        rd_kafka_topic_partition_list_new((int)options->topic_count);
    for (size_t i = 0; i < options->topic_count; i++)
        rd_kafka_topic_partition_list_add_range(
            all, options->topics[i], 0, (int32_t)options->partitions - 1);
    *arrival = (struct arrival){.partitions = all};
    source->group = SOURCE_GROUP_MEMBER;
}

void arrival_end(struct arrival *arrival) {
    if (arrival->partitions != NULL) rd_kafka_topic_partition_list_destroy(arrival->partitions);
    arrival->partitions = NULL;
}

rd_kafka_resp_err_t arrival_claim(
    struct arrival *arrival, struct committer *committer, struct claim *claim, uint64_t owner) {
    if (clock_ns() < arrival->next_fetch_ns) return RD_KAFKA_RESP_ERR__IN_PROGRESS;
    arrival->next_fetch_ns = clock_ns_in(FETCH_INTERVAL_MS);
    rd_kafka_resp_err_t code =
        ownership_claim(committer, claim, owner, arrival->partitions, FETCH_TIMEOUT_MS);
    arrival->is_claimed = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (arrival->is_claimed || client_is_final(code) || committer_is_outside(code)) return code;
    if (code != RD_KAFKA_RESP_ERR__IN_PROGRESS)
        ownership_tell_waiting(
            &arrival->wait, committer->events, arrival->partitions, code, clock_ns());
    return RD_KAFKA_RESP_ERR__IN_PROGRESS;
}

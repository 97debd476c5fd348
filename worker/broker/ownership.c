#include "broker/ownership.h"

#include <inttypes.h>

#include "base/clock.h"
#include "broker/assignment.h"
#include "broker/clients.h"
#include "broker/commit_list.h"

enum { LONG_WAIT_S = 60 };

static void tell_takeovers(const struct committer *committer, const rd_kafka_topic_partition_t *p) {
    struct offsets_commit committed;
    if (!commit_list_get(p, &committed)) return;
    if (committed.metadata.takeovers < OFFSETS_TAKEOVERS_MAX) return;
    client_say(committer->events, LOG_WARN,
        "%s [%d] comes from owners that died, %" PRIu32 " times: messages from offset %" PRId64
        " to %" PRId64 " run one by one",
        p->topic, (int)p->partition, committed.metadata.takeovers, p->offset,
        p->offset + committed.metadata.window - 1);
}

bool ownership_keeps(const struct source *source, const struct position *position) {
    return offsets_keeps(consumer_offsets(source), position);
}

bool ownership_start(struct source *source, const struct position *position) {
    return offsets_start(consumer_offsets(source), position);
}

void ownership_put_back(struct source *source, const struct position *position) {
    offsets_put_back(consumer_offsets(source), position);
}

/* False when memory is short. */
static bool mark(const struct committer *committer, uint64_t owner, rd_kafka_topic_partition_t *p) {
    struct offsets_commit committed;
    if (!commit_list_get(p, &committed))
        client_say(committer->events, LOG_WARN,
            "ignores the metadata committed for %s [%d], which this version cannot read: "
            "messages above offset %" PRId64 " that were finished run again",
            p->topic, (int)p->partition, p->offset);
    commit_metadata_claim(&committed.metadata, owner);
    return commit_list_set(p, &committed);
}

/* The partitions that have an offset; a commit without any offset would be refused. */
static rd_kafka_topic_partition_list_t *list_placed(
    const rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_topic_partition_list_t *placed = rd_kafka_topic_partition_list_copy(partitions);
    for (int i = placed->cnt - 1; i >= 0; i--)
        if (placed->elems[i].offset < 0) rd_kafka_topic_partition_list_del_by_idx(placed, i);
    return placed;
}

static rd_kafka_resp_err_t find_and_mark(struct committer *committer, uint64_t owner,
    rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code = commit_list_fetch(committer->client, partitions, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = commit_list_locate(committer->client, partitions, timeout_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
    for (int i = 0; i < partitions->cnt; i++)
        if (partitions->elems[i].offset >= 0 && !mark(committer, owner, &partitions->elems[i]))
            return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t commit_marks(struct committer *committer, struct claim *claim,
    const rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_topic_partition_list_t *placed = list_placed(partitions);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    if (placed->cnt == 0) code = RD_KAFKA_RESP_ERR_NO_ERROR;
    else if (claim == NULL)
        code = committer_commit_list(committer, placed, clock_ns_in((uint64_t)timeout_ms));
    else if (!claim_ask(claim, placed, rd_kafka_consumer_group_metadata(committer->client)))
        code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_topic_partition_list_destroy(placed);
    return code;
}

rd_kafka_resp_err_t ownership_claim(struct committer *committer, struct claim *claim,
    uint64_t owner, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code;
    if (claim == NULL || !claim_get_answer(claim, &code)) {
        code = find_and_mark(committer, owner, partitions, timeout_ms);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            code = commit_marks(committer, claim, partitions, timeout_ms);
    }
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        if (partitions->elems[i].offset >= 0) tell_takeovers(committer, &partitions->elems[i]);
    return code;
}

void ownership_tell_waiting(struct ownership_wait *wait, const struct client_events *events,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_resp_err_t code, uint64_t now_ns) {
    if (wait->since_ns == 0) {
        wait->since_ns = now_ns;
        client_say(events, LOG_INFO, "waits for the group's committed offsets: %s",
            rd_kafka_err2str(code));
    }
    if (wait->is_long || now_ns - wait->since_ns < LONG_WAIT_S * 1000000000ull) return;
    wait->is_long = true;
    char names[256];
    assignment_text(partitions, names, sizeof names);
    client_say(events, LOG_WARN,
        "has waited %d s for the committed offsets of %s, and runs none of its jobs "
        "meanwhile: %s; if the brokers are well, one of them left a transaction open when it "
        "crashed: look for it with kafka-transactions.sh find-hanging (worker/README.md, "
        "Transactions)",
        LONG_WAIT_S, names, rd_kafka_err2str(code));
}

static bool has_started(struct offsets *offsets, const rd_kafka_topic_partition_t *p) {
    struct offsets_state state;
    return offsets_get(offsets, p->topic, p->partition, &state) && state.started_count > 0;
}

rd_kafka_resp_err_t ownership_release(struct committer *committer,
    const rd_kafka_topic_partition_list_t *partitions, bool only_settled, uint64_t deadline_ns) {
    rd_kafka_topic_partition_list_t *released = rd_kafka_topic_partition_list_copy(partitions);
    for (int i = released->cnt - 1; i >= 0 && only_settled; i--)
        if (has_started(committer->offsets, &released->elems[i]))
            rd_kafka_topic_partition_list_del_by_idx(released, i);
    rd_kafka_resp_err_t code = committer_commit_last(committer, released, deadline_ns);
    rd_kafka_topic_partition_list_destroy(released);
    return code;
}

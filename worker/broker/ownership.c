#include "broker/ownership.h"

#include <inttypes.h>

#include "base/clock.h"
#include "broker/assignment.h"
#include "broker/client.h"
#include "broker/commit_list.h"

enum {
    FETCH_TIMEOUT_MS = 500, /* of each of four requests to take partitions over */
    FETCH_INTERVAL_MS = 100,
    LONG_WAIT_S = 60
};

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

static void tell_ignored(
    const struct committer *committer, const rd_kafka_topic_partition_t *p, const char *why) {
    client_say(committer->events, LOG_WARN,
        "ignores the metadata committed for %s [%d], which %s: "
        "messages above offset %" PRId64 " that were finished run again",
        p->topic, (int)p->partition, why, p->offset);
}

/* What was committed for a topic that was deleted since is nothing. */
static void drop_others(
    const struct committer *committer, rd_kafka_topic_partition_list_t *partitions) {
    struct offsets_commit committed;
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (!commit_list_get(p, &committed) ||
            !topic_ids_differ(
                committed.metadata.topic_id, recreations_get_id(&committer->recreations, p->topic)))
            continue;
        client_say(committer->events, LOG_WARN,
            "%s [%d]: offset %" PRId64 " was committed for an earlier topic of this name, which "
            "was deleted; this one is read from its start",
            p->topic, (int)p->partition, p->offset);
        p->offset = RD_KAFKA_OFFSET_BEGINNING;
        p->metadata_size = 0;
    }
}

/*
 * A text of an earlier version names no offset. What speaks against it is a log that does not reach
 * what it calls finished: that belongs to another offset, or to a log that has lost its end.
 */
static rd_kafka_resp_err_t drop_misplaced(const struct committer *committer,
    rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_new(partitions->cnt);
    struct offsets_commit committed;
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (commit_list_get(p, &committed) && !committed.metadata.names_offset &&
            commit_metadata_span(&committed.metadata) > 0)
            rd_kafka_topic_partition_list_add(ends, p->topic, p->partition);
    }
    rd_kafka_resp_err_t code = commit_list_find_ends(committer->client, ends, timeout_ms);
    for (int i = 0; i < ends->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        rd_kafka_topic_partition_t *p = rd_kafka_topic_partition_list_find(
            partitions, ends->elems[i].topic, ends->elems[i].partition);
        (void)commit_list_get(p, &committed); /* it was read above */
        if (p->offset + (int64_t)commit_metadata_span(&committed.metadata) <= ends->elems[i].offset)
            continue;
        tell_ignored(committer, p, "calls messages finished that the log does not reach");
        p->metadata_size = 0;
    }
    rd_kafka_topic_partition_list_destroy(ends);
    return code;
}

/* False when memory is short. */
static bool mark(const struct committer *committer, uint64_t owner, rd_kafka_topic_partition_t *p) {
    struct offsets_commit committed;
    if (!commit_list_get(p, &committed))
        tell_ignored(committer, p, "belongs to another offset or cannot be read by this version");
    commit_metadata_claim(&committed.metadata, owner);
    const char *id = recreations_get_id(&committer->recreations, p->topic);
    if (id[0] != 0) snprintf(committed.metadata.topic_id, TOPIC_ID_SIZE, "%s", id);
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

/* Whatever is known of a message is of an earlier log. */
static void forget_others(
    const struct committer *committer, const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (p->offset < 0)
            source_tell_committed(committer->source, p->topic, p->partition, INT64_MAX);
    }
}

static rd_kafka_resp_err_t find_and_mark(struct committer *committer, uint64_t owner,
    rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code =
        recreations_learn_ids(&committer->recreations, partitions, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = commit_list_fetch(committer->client, partitions, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        drop_others(committer, partitions);
        commit_list_mark_known(partitions);
        forget_others(committer, partitions);
        code =
            commit_list_locate(committer->client, partitions, committer->has_claimed, timeout_ms);
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = drop_misplaced(committer, partitions, timeout_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
    for (int i = 0; i < partitions->cnt; i++)
        if (partitions->elems[i].offset >= 0 && !mark(committer, owner, &partitions->elems[i]))
            return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* An error: it is claimed again, maybe because its topic was created anew meanwhile. */
static rd_kafka_resp_err_t confirm(struct committer *committer, bool in_transactions,
    rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    struct offsets_commit claimed;
    rd_kafka_resp_err_t code =
        recreations_learn_ids(&committer->recreations, partitions, timeout_ms);
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        const char *id = recreations_get_id(&committer->recreations, p->topic);
        if (commit_list_get(p, &claimed) && topic_ids_differ(claimed.metadata.topic_id, id))
            code = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && in_transactions)
        code = commit_list_find_known(committer->client, partitions, timeout_ms);
    return code;
}

static rd_kafka_resp_err_t commit_marks(struct committer *committer, struct claim *claim,
    const rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_topic_partition_list_t *placed = list_placed(partitions);
    rd_kafka_consumer_group_metadata_t *group;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    if (placed->cnt == 0) code = RD_KAFKA_RESP_ERR_NO_ERROR;
    else if (claim == NULL)
        code = committer_commit_list(committer, placed, clock_ns_in((uint64_t)timeout_ms));
    else if ((group = member_get(committer->member, committer->client)) == NULL)
        code = RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    else if (!claim_ask(claim, placed, group)) code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_topic_partition_list_destroy(placed);
    return code;
}

/*
 * Reads what is committed for partitions (if nothing is, where reading starts), and commits the
 * same with `owner` as the owner. The list then has both. No message of these partitions may begin
 * before this. The call may be repeated after a failure: finding our own mark changes nothing. With
 * a `claim`, a transaction makes the commit: IN_PROGRESS until it is called again with the same
 * list and there is an answer.
 */
static rd_kafka_resp_err_t claim_all(struct committer *committer, struct claim *claim,
    uint64_t owner, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code;
    if (claim == NULL || !claim_get_answer(claim, &code)) {
        code = find_and_mark(committer, owner, partitions, timeout_ms);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            code = commit_marks(committer, claim, partitions, timeout_ms);
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = confirm(committer, claim != NULL, partitions, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) committer->has_claimed = true;
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
        claim_all(committer, claim, owner, arrival->partitions, FETCH_TIMEOUT_MS);
    arrival->is_claimed = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (arrival->is_claimed || client_is_final(code) || committer_is_outside(code)) return code;
    if (code != RD_KAFKA_RESP_ERR__IN_PROGRESS)
        ownership_tell_waiting(
            &arrival->wait, committer->events, arrival->partitions, code, clock_ns());
    return RD_KAFKA_RESP_ERR__IN_PROGRESS;
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

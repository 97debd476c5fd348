#include "broker/committer.h"

#include "base/clock.h"
#include "broker/commit_list.h"

/* The partition is not there any more, nor what would be read of it. */
#define GONE RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART

void committer_init(struct committer *committer, rd_kafka_t *client, struct member *member,
    struct offsets *offsets, struct held *held, struct client_events *events,
    struct source *source) {
    *committer = (struct committer){.client = client,
        .member = member,
        .offsets = offsets,
        .events = events,
        .source = source,
        .answers = rd_kafka_queue_new(client)};
    recreations_init(&committer->recreations, client, offsets, held, source, events);
}

void committer_fini(struct committer *committer) {
    if (committer->requested != NULL) rd_kafka_topic_partition_list_destroy(committer->requested);
    if (committer->answers != NULL) rd_kafka_queue_destroy(committer->answers);
    recreations_fini(&committer->recreations);
}

bool committer_is_rebalancing(rd_kafka_resp_err_t answer) {
    return answer == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           answer == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
}

bool committer_is_outside(rd_kafka_resp_err_t answer) {
    return answer == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
           answer == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
}

/*
 * Reports a failure once, however often it repeats. What a rebalance refused is in the next commit;
 * that the group went on without this member is told with the partitions that it costs.
 */
static void report(struct committer *committer, rd_kafka_resp_err_t answer) {
    bool is_known = answer == committer->reported;
    committer->reported = answer;
    if (is_known || answer == RD_KAFKA_RESP_ERR_NO_ERROR || committer_is_rebalancing(answer) ||
        committer_is_outside(answer))
        return;
    client_report(committer->events, answer, "committing offsets failed");
}

static void on_answer(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *answer, void *opaque) {
    struct committer *committer = opaque;
    const rd_kafka_topic_partition_list_t *partitions =
        answer != NULL ? answer : committer->requested;
    committer->last_answer = code;
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && p->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            source_tell_committed(committer->source, p->topic, p->partition, p->offset);
            continue;
        }
        offsets_commit_failed(committer->offsets, p->topic, p->partition);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR &&
            (p->err != GONE || committer->last_answer == RD_KAFKA_RESP_ERR_NO_ERROR))
            committer->last_answer = p->err;
    }
    report(committer, committer->last_answer);
    rd_kafka_topic_partition_list_destroy(committer->requested);
    committer->requested = NULL;
}

void committer_serve(struct committer *committer) {
    rd_kafka_queue_poll_callback(committer->answers, 0);
}

/* Takes `list`. Call it when no request is under way. */
static void request(struct committer *committer, rd_kafka_topic_partition_list_t *list) {
    committer->last_answer = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt == 0) {
        rd_kafka_topic_partition_list_destroy(list);
        return;
    }
    committer->requested = list;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    rd_kafka_consumer_group_metadata_t *group = member_get(committer->member, committer->client);
    if (group != NULL) {
        code = rd_kafka_commit_queue(
            committer->client, list, committer->answers, on_answer, committer);
        rd_kafka_consumer_group_metadata_destroy(group);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) on_answer(committer->client, code, NULL, committer);
}

typedef bool take_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret);

static rd_kafka_topic_partition_list_t *take_commits(struct committer *committer,
    const rd_kafka_topic_partition_list_t *partitions, take_commit *take) {
    rd_kafka_topic_partition_list_t *taken = rd_kafka_topic_partition_list_new(partitions->cnt);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        struct offsets_commit commit;
        if (!take(committer->offsets, p->topic, p->partition, &commit)) continue;
        if (!commit_list_add(taken, p->topic, p->partition, &commit))
            offsets_commit_failed(committer->offsets, p->topic, p->partition);
    }
    return taken;
}

bool committer_start(struct committer *committer, rd_kafka_topic_partition_list_t *partitions,
    bool in_transactions) {
    if (committer->requested != NULL) return false;
    if (!recreations_serve(&committer->recreations, partitions)) return false;
    if (!in_transactions)
        request(committer, take_commits(committer, partitions, offsets_take_commit));
    return true;
}

/* True once no request is under way. */
static bool wait_for_answer(struct committer *committer, uint64_t deadline_ns) {
    while (committer->requested != NULL) {
        uint64_t now_ns = clock_ns();
        if (now_ns >= deadline_ns) return false;
        rd_kafka_queue_poll_callback(
            committer->answers, (int)((deadline_ns - now_ns) / 1000000u) + 1);
    }
    return true;
}

/* Takes `list`, and sends the request now. */
static rd_kafka_resp_err_t commit(
    struct committer *committer, rd_kafka_topic_partition_list_t *list, uint64_t deadline_ns) {
    request(committer, list);
    if (!wait_for_answer(committer, deadline_ns)) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    return committer->last_answer;
}

rd_kafka_resp_err_t committer_commit_list(struct committer *committer,
    const rd_kafka_topic_partition_list_t *list, uint64_t deadline_ns) {
    if (!wait_for_answer(committer, deadline_ns)) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    return commit(committer, rd_kafka_topic_partition_list_copy(list), deadline_ns);
}

rd_kafka_resp_err_t committer_commit_last(struct committer *committer,
    rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns) {
    if (!wait_for_answer(committer, deadline_ns)) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (!recreations_take_out(&committer->recreations, partitions, deadline_ns))
        return RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_resp_err_t code = commit(
        committer, take_commits(committer, partitions, offsets_take_last_commit), deadline_ns);
    return code != GONE ? code : RD_KAFKA_RESP_ERR_NO_ERROR;
}

#include "broker/assignment.h"

#include <stdio.h>
#include <string.h>

enum err assignment_subscribe(
    rd_kafka_t *client, char *const *topics, size_t count, struct error *err) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, topics[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t code = rd_kafka_subscribe(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ERR_OK;
    return error_set(err, ERR_CONFIG, code, "give topics.jobs names that Kafka allows",
        "subscribing to topics.jobs: %s", rd_kafka_err2str(code));
}

bool assignment_is_cooperative(rd_kafka_t *client) {
    const char *protocol = rd_kafka_rebalance_protocol(client);
    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

static rd_kafka_resp_err_t change_in_part(rd_kafka_t *client, enum assignment_change change,
    const rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_error_t *error = change == ASSIGNMENT_ADD
                                  ? rd_kafka_incremental_assign(client, partitions)
                                  : rd_kafka_incremental_unassign(client, partitions);
    rd_kafka_resp_err_t code = rd_kafka_error_code(error); /* NULL means no error */
    if (error != NULL) rd_kafka_error_destroy(error);
    return code;
}

rd_kafka_resp_err_t assignment_change(rd_kafka_t *client, bool is_cooperative,
    enum assignment_change change, const rd_kafka_topic_partition_list_t *partitions) {
    if (is_cooperative) return change_in_part(client, change, partitions);
    return rd_kafka_assign(client, change == ASSIGNMENT_ADD ? partitions : NULL);
}

void assignment_renew(rd_kafka_t *client, struct client_events *events) {
    rd_kafka_topic_partition_list_t *topics;
    rd_kafka_resp_err_t code = rd_kafka_subscription(client, &topics);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        /* A static member that unsubscribes leaves at once. */
        code = rd_kafka_unsubscribe(client);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = rd_kafka_subscribe(client, topics);
        rd_kafka_topic_partition_list_destroy(topics);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        client_report(events, code, "joining the group again failed");
}

void assignment_place_at_end(rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = RD_KAFKA_OFFSET_END;
}

rd_kafka_resp_err_t assignment_seek(
    rd_kafka_t *client, const char *topic, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, topic, partition)->offset = offset;
    /* A local operation, so without a limit: before 2.1, librdkafka waits for a thousandth of it.
     */
    rd_kafka_error_t *error = rd_kafka_seek_partitions(client, one, -1);
    rd_kafka_resp_err_t code = rd_kafka_error_code(error); /* NULL means no error */
    if (error != NULL) rd_kafka_error_destroy(error);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = one->elems[0].err;
    rd_kafka_topic_partition_list_destroy(one);
    return code;
}

/* Pauses a copy of the list, because librdkafka writes an error code into each element. */
rd_kafka_resp_err_t assignment_pause(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions, bool paused) {
    rd_kafka_topic_partition_list_t *copy = rd_kafka_topic_partition_list_copy(partitions);
    rd_kafka_resp_err_t code =
        paused ? rd_kafka_pause_partitions(client, copy) : rd_kafka_resume_partitions(client, copy);
    rd_kafka_topic_partition_list_destroy(copy);
    return code;
}

rd_kafka_topic_partition_list_t *assignment_get(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *partitions;
    if (rd_kafka_assignment(client, &partitions) == RD_KAFKA_RESP_ERR_NO_ERROR) return partitions;
    return rd_kafka_topic_partition_list_new(0);
}

void assignment_leave(struct offsets *offsets, const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++)
        offsets_leave(offsets, partitions->elems[i].topic, partitions->elems[i].partition);
}

void assignment_revoke(struct offsets *offsets, const struct source *source,
    const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        offsets_revoke(offsets, p->topic, p->partition);
        source_tell_revoked(source, p->topic, p->partition);
    }
}

struct assignment_counts assignment_count(
    struct offsets *offsets, const rd_kafka_topic_partition_list_t *partitions) {
    struct assignment_counts counts = {0};
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        struct offsets_state state;
        if (!offsets_get(offsets, p->topic, p->partition, &state)) continue;
        counts.unfinished += state.unfinished_count;
        counts.started += state.started_count;
    }
    return counts;
}

void assignment_text(const rd_kafka_topic_partition_list_t *partitions, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < partitions->cnt && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s [%d]", i > 0 ? ", " : "",
            partitions->elems[i].topic, partitions->elems[i].partition);
}

void assignment_tell_leaving(const struct client_events *events, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *partitions) {
    struct assignment_counts counts = assignment_count(offsets, partitions);
    char names[256];
    assignment_text(partitions, names, sizeof names);
    client_say(events, LOG_INFO, "revoking %s: waiting for %zu running jobs, returning %zu", names,
        counts.started, counts.unfinished - counts.started);
}

void assignment_tell_left(const struct client_events *events, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_resp_err_t code) {
    struct assignment_counts counts = assignment_count(offsets, partitions);
    char names[256];
    assignment_text(partitions, names, sizeof names);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        client_say(events, LOG_INFO,
            "returned %s with %zu unfinished messages, %zu of them running", names,
            counts.unfinished, counts.started);
    else
        client_say(events, LOG_WARN,
            "gave up %s without a commit (%s): messages since the last commit are read again",
            names, rd_kafka_err2name(code));
}

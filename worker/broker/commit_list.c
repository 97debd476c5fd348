#include "broker/commit_list.h"

#include <stdlib.h>
#include <string.h>

static char known; /* its address is the mark */
#define KNOWN (&known)

bool commit_list_set(rd_kafka_topic_partition_t *element, const struct offsets_commit *commit) {
    char text[COMMIT_METADATA_TEXT_SIZE];
    size_t size = commit_metadata_encode(&commit->metadata, commit->offset, text);
    char *metadata = strdup(text); /* the list owns it */
    if (metadata == NULL) return false;
    free(element->metadata);
    element->offset = commit->offset;
    element->metadata = metadata;
    element->metadata_size = size;
    return true;
}

bool commit_list_add(rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition,
    const struct offsets_commit *commit) {
    rd_kafka_topic_partition_t *added = rd_kafka_topic_partition_list_add(list, topic, partition);
    added->opaque = commit->is_first ? NULL : KNOWN;
    if (commit_list_set(added, commit)) return true;
    rd_kafka_topic_partition_list_del_by_idx(list, list->cnt - 1);
    return false;
}

rd_kafka_resp_err_t commit_list_fetch(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code = rd_kafka_committed(client, partitions, timeout_ms);
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        code = partitions->elems[i].err;
    return code;
}

void commit_list_mark_known(rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++)
        partitions->elems[i].opaque = partitions->elems[i].offset >= 0 ? KNOWN : NULL;
}

bool commit_list_is_known(const rd_kafka_topic_partition_t *element) {
    return element->opaque == KNOWN;
}

rd_kafka_resp_err_t commit_list_find_known(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_topic_partition_list_t *told = rd_kafka_topic_partition_list_copy(partitions);
    rd_kafka_resp_err_t code = commit_list_fetch(client, told, timeout_ms);
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (told->elems[i].offset >= 0) p->opaque = KNOWN;
        else if (commit_list_is_known(p)) code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    }
    rd_kafka_topic_partition_list_destroy(told);
    return code;
}

/* Where reading starts without a committed offset. RD_KAFKA_OFFSET_INVALID: nowhere. */
static int64_t start_of(rd_kafka_t *client) {
    char reset[32] = "";
    size_t size = sizeof reset;
    (void)rd_kafka_conf_get(rd_kafka_conf(client), "auto.offset.reset", reset, &size);
    static const struct {
        const char *name;
        int64_t offset;
    } starts[] = {{"smallest", RD_KAFKA_OFFSET_BEGINNING}, {"earliest", RD_KAFKA_OFFSET_BEGINNING},
        {"beginning", RD_KAFKA_OFFSET_BEGINNING}, {"largest", RD_KAFKA_OFFSET_END},
        {"latest", RD_KAFKA_OFFSET_END}, {"end", RD_KAFKA_OFFSET_END}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strcmp(reset, starts[i].name) == 0) return starts[i].offset;
    return RD_KAFKA_OFFSET_INVALID;
}

/* If these two are passed as times, the broker answers with the ends of the log. */
static rd_kafka_resp_err_t find_in_logs(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    if (partitions->cnt == 0) return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(client, partitions, timeout_ms);
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        code = partitions->elems[i].err;
    return code;
}

static void drop_missing(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    for (int i = partitions->cnt - 1; i >= 0; i--) {
        int64_t start, end;
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (rd_kafka_query_watermark_offsets(client, p->topic, p->partition, &start, &end,
                timeout_ms) == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
            rd_kafka_topic_partition_list_del_by_idx(partitions, i);
    }
}

static bool has_committed(const rd_kafka_topic_partition_list_t *partitions, const char *topic) {
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (p->offset >= 0 && strcmp(p->topic, topic) == 0) return true;
    }
    return false;
}

/*
 * What the group has committed for the partitions before those without an offset. Partitions are
 * added at the end, and a member may be given added ones alone. Where it reads from the start
 * anyway, nobody wants to know.
 */
static rd_kafka_resp_err_t fetch_earlier(rd_kafka_t *client,
    const rd_kafka_topic_partition_list_t *partitions, int timeout_ms,
    rd_kafka_topic_partition_list_t **ret) {
    *ret = rd_kafka_topic_partition_list_new(0);
    for (int i = 0; i < partitions->cnt && start_of(client) == RD_KAFKA_OFFSET_END; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        for (int32_t earlier = 0; p->offset < 0 && earlier < p->partition; earlier++)
            if (rd_kafka_topic_partition_list_find(*ret, p->topic, earlier) == NULL)
                rd_kafka_topic_partition_list_add(*ret, p->topic, earlier);
    }
    return (*ret)->cnt > 0 ? commit_list_fetch(client, *ret, timeout_ms)
                           : RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Lists partitions without an offset, with where their log is to be asked for instead. */
static rd_kafka_topic_partition_list_t *list_unplaced(rd_kafka_t *client,
    const rd_kafka_topic_partition_list_t *partitions,
    const rd_kafka_topic_partition_list_t *earlier, bool is_known) {
    rd_kafka_topic_partition_list_t *unplaced = rd_kafka_topic_partition_list_new(partitions->cnt);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        bool from_start = p->offset == RD_KAFKA_OFFSET_BEGINNING || is_known ||
                          has_committed(partitions, p->topic) || has_committed(earlier, p->topic);
        int64_t start = from_start ? RD_KAFKA_OFFSET_BEGINNING : start_of(client);
        if (p->offset < 0 && start != RD_KAFKA_OFFSET_INVALID)
            rd_kafka_topic_partition_list_add(unplaced, p->topic, p->partition)->offset = start;
    }
    return unplaced;
}

rd_kafka_resp_err_t commit_list_locate(rd_kafka_t *client,
    rd_kafka_topic_partition_list_t *partitions, bool is_known, int timeout_ms) {
    rd_kafka_topic_partition_list_t *earlier;
    rd_kafka_resp_err_t code = fetch_earlier(client, partitions, timeout_ms, &earlier);
    rd_kafka_topic_partition_list_t *asked = list_unplaced(client, partitions, earlier, is_known);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = find_in_logs(client, asked, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
        rd_kafka_topic_partition_list_destroy(asked); /* what is in it now is no question */
        asked = list_unplaced(client, partitions, earlier, is_known);
        drop_missing(client, asked, timeout_ms);
        code = find_in_logs(client, asked, timeout_ms);
    }
    for (int i = 0; i < asked->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        code = rd_kafka_topic_partition_list_set_offset(
            partitions, asked->elems[i].topic, asked->elems[i].partition, asked->elems[i].offset);
    rd_kafka_topic_partition_list_destroy(asked);
    rd_kafka_topic_partition_list_destroy(earlier);
    return code;
}

rd_kafka_resp_err_t commit_list_find_ends(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = RD_KAFKA_OFFSET_END;
    return find_in_logs(client, partitions, timeout_ms);
}

bool commit_list_get(const rd_kafka_topic_partition_t *element, struct offsets_commit *ret) {
    ret->offset = element->offset >= 0 ? element->offset : OFFSET_UNKNOWN;
    ret->is_first = !commit_list_is_known(element);
    return commit_metadata_decode(
        slice_of(element->metadata, element->metadata_size), ret->offset, &ret->metadata);
}

bool commit_list_is_same(const rd_kafka_topic_partition_t *a, const rd_kafka_topic_partition_t *b) {
    return a != NULL && b != NULL && a->offset == b->offset &&
           a->metadata_size == b->metadata_size &&
           (a->metadata_size == 0 || memcmp(a->metadata, b->metadata, a->metadata_size) == 0);
}

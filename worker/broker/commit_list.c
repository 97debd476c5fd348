#include "broker/commit_list.h"

#include <string.h>

bool commit_list_add(rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition,
    const struct offsets_commit *commit) {
    char text[COMMIT_METADATA_TEXT_SIZE];
    size_t size = commit_metadata_encode(&commit->metadata, text);
    char *metadata = strdup(text); /* the list's own */
    if (metadata == NULL) return false;
    rd_kafka_topic_partition_t *element = rd_kafka_topic_partition_list_add(list, topic, partition);
    element->offset = commit->offset;
    element->metadata = metadata;
    element->metadata_size = size;
    return true;
}

rd_kafka_resp_err_t commit_list_fetch(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    rd_kafka_resp_err_t code = rd_kafka_committed(client, partitions, timeout_ms);
    for (int i = 0; i < partitions->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        code = partitions->elems[i].err;
    return code;
}

bool commit_list_get(const rd_kafka_topic_partition_t *element, struct offsets_commit *ret) {
    ret->offset = element->offset >= 0 ? element->offset : OFFSET_UNKNOWN;
    return commit_metadata_decode(
        slice_of(element->metadata, element->metadata_size), &ret->metadata);
}

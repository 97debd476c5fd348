#include "broker/committed.h"

#include "broker/client.h"
#include "broker/commit_list.h"

static const struct client_setting defaults[] = {{"client.id", "gpu-worker-reader"}, {NULL, NULL}};

static void compare(const struct offsets_commit *commit, int64_t offset, struct committed *ret) {
    *ret = (struct committed){.is_any = commit->offset >= 0};
    if (!ret->is_any || offset < commit->offset) {
        ret->is_finished = ret->is_any;
        return;
    }
    uint64_t index = (uint64_t)(offset - commit->offset);
    ret->earlier = index;
    for (uint64_t i = 0; i < index && i < COMMIT_METADATA_WINDOW; i++)
        ret->earlier -= commit_metadata_has_finished(&commit->metadata, i);
    ret->is_finished =
        index < COMMIT_METADATA_WINDOW && commit_metadata_has_finished(&commit->metadata, index);
}

static enum err ask(rd_kafka_t *client, const struct position *position, int timeout_ms,
    struct committed *ret, struct error *err) {
    struct offsets_commit commit;
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, position->topic, position->partition);
    rd_kafka_resp_err_t native = commit_list_fetch(client, one, timeout_ms);
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)!commit_list_get(&one->elems[0], &commit); /* the offset alone says the most */
        compare(&commit, position->offset, ret);
    }
    rd_kafka_topic_partition_list_destroy(one);
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) return ERR_OK;
    return error_set(err, ERR_BROKER, native,
        "check that the brokers run, and the rights to the group; while a transaction is open, ask "
        "again later",
        "what the group has committed cannot be read: %s", rd_kafka_err2str(native));
}

enum err committed_read(const struct kafka_options *options, const char *group,
    const struct position *position, int timeout_ms, struct committed *ret, struct error *err) {
    const struct client_setting required[] = {
        {"group.id", group}, {"enable.auto.commit", "false"}, {"log.queue", "true"}, {NULL, NULL}};
    rd_kafka_conf_t *conf = NULL;
    rd_kafka_t *client = NULL;
    *ret = (struct committed){0};
    enum err code = client_conf_create(options, "kafka.consumer", defaults, required, &conf, err);
    if (code == ERR_OK)
        code = client_create(RD_KAFKA_CONSUMER, conf, "kafka.consumer", &client, err);
    if (code == ERR_OK) code = ask(client, position, timeout_ms, ret, err);
    client_destroy(client);
    return code;
}

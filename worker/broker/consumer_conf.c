#include "broker/consumer_conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/client.h"
#include "broker/version.h"

enum {
    COOPERATIVE_VERSION = 0x020a0000,
    FETCH_BACKOFF_MS = 10,
    QUEUE_KIB_MAX = 2097151, /* what librdkafka takes */
};

/* Cooperative assignment crashes, loops or loses the assignment in older versions. */
static enum err check_strategy(const rd_kafka_conf_t *conf, struct error *err) {
    char strategy[128];
    size_t size = sizeof strategy;
    if (rd_kafka_version() >= COOPERATIVE_VERSION ||
        rd_kafka_conf_get(conf, "partition.assignment.strategy", strategy, &size) !=
            RD_KAFKA_CONF_OK ||
        strstr(strategy, "cooperative") == NULL)
        return ERR_OK;
    return error_set(err, ERR_CONFIG, 0, "use range or roundrobin, or librdkafka 2.10 or newer",
        CONSUMER_SECTION ".partition.assignment.strategy: librdkafka %s cannot be trusted with %s",
        rd_kafka_version_str(), strategy);
}

static enum err set_number(
    rd_kafka_conf_t *conf, const char *key, uint64_t value, struct error *err) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return client_conf_set(conf, CONSUMER_SECTION, key, text, err);
}

/*
 * What is fetched ahead is bounded by the queue, which is one for all partitions, and by the
 * response that overshoots it, one a broker. A queue that is full is looked at again after
 * FETCH_BACKOFF_MS; before librdkafka 2.2 when something wakes the client (waker.h).
 */
static enum err bound_fetches(
    const struct consumer_options *options, rd_kafka_conf_t *conf, struct error *err) {
    const struct kafka_options *kafka = &options->kafka;
    uint64_t bytes = options->fetch_ahead_bytes, kib = bytes / 1024 + 1;
    uint64_t message_bytes = client_conf_number(conf, "message.max.bytes");
    uint64_t fetch_bytes = bytes > message_bytes ? bytes : message_bytes;
    enum err code = ERR_OK;
    if (!kafka_options_have(kafka, "queued.max.messages.kbytes"))
        code = set_number(
            conf, "queued.max.messages.kbytes", kib < QUEUE_KIB_MAX ? kib : QUEUE_KIB_MAX, err);
    if (code == ERR_OK && fetch_bytes < client_conf_number(conf, "fetch.max.bytes") &&
        !kafka_options_have(kafka, "fetch.max.bytes"))
        code = set_number(conf, "fetch.max.bytes", fetch_bytes, err);
    if (code == ERR_OK && rd_kafka_version() >= VERSION_FETCH_BACKOFF &&
        !kafka_options_have(kafka, "fetch.queue.backoff.ms"))
        code = set_number(conf, "fetch.queue.backoff.ms", FETCH_BACKOFF_MS, err);
    return code;
}

/* A member that takes longer to give partitions back is outside of its group. */
static enum err bound_rebalances(
    const struct consumer_options *options, rd_kafka_conf_t *conf, struct error *err) {
    static const char key[] = "max.poll.interval.ms";
    if (kafka_options_have(&options->kafka, key) ||
        options->poll_interval_ms <= client_conf_number(conf, key))
        return ERR_OK;
    return set_number(conf, key, options->poll_interval_ms, err);
}

enum err consumer_conf_create(
    const struct consumer_options *options, rd_kafka_conf_t **ret, struct error *err) {
    bool is_cooperative = rd_kafka_version() >= COOPERATIVE_VERSION;
    const struct client_setting defaults[] = {{"client.id", "gpu-worker"},
        {"auto.offset.reset", "earliest"},
        {"partition.assignment.strategy",
            is_cooperative ? "cooperative-sticky" : "range,roundrobin"},
        {"session.timeout.ms", "20000"},
        {"queued.min.messages", "100000"}, /* bytes are what bounds the queue */
        /* how soon a topic that did not exist yet is found */
        {"topic.metadata.refresh.interval.ms", "10000"}, {"allow.auto.create.topics", "false"},
        {NULL, NULL}};
    const struct client_setting required[] = {{"group.id", options->group},
        {"enable.auto.commit", "false"}, {"enable.auto.offset.store", "false"},
        {"enable.partition.eof", "true"}, {"log.queue", "true"}, {NULL, NULL}};
    rd_kafka_conf_t *conf;
    enum err code =
        client_conf_create(&options->kafka, CONSUMER_SECTION, defaults, required, &conf, err);
    if (code != ERR_OK) return code;
    code = check_strategy(conf, err);
    if (code == ERR_OK && options->instance_id != NULL && options->instance_id[0] != 0)
        code =
            client_conf_set(conf, CONSUMER_SECTION, "group.instance.id", options->instance_id, err);
    if (code == ERR_OK) code = bound_fetches(options, conf, err);
    if (code == ERR_OK) code = bound_rebalances(options, conf, err);
    if (code == ERR_OK && options->fetch_wait_ms > 0 &&
        !kafka_options_have(&options->kafka, "fetch.wait.max.ms"))
        code = set_number(conf, "fetch.wait.max.ms", options->fetch_wait_ms, err);
    if (code != ERR_OK) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    *ret = conf;
    return ERR_OK;
}

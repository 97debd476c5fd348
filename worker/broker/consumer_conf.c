#include "broker/consumer_conf.h"

#include <string.h>

#include "broker/client.h"

enum { COOPERATIVE_VERSION = 0x020a0000 };

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

enum err consumer_conf_create(
    const struct consumer_options *options, rd_kafka_conf_t **ret, struct error *err) {
    bool is_cooperative = rd_kafka_version() >= COOPERATIVE_VERSION;
    const struct client_setting defaults[] = {{"client.id", "gpu-worker"},
        {"auto.offset.reset", "earliest"},
        {"partition.assignment.strategy",
            is_cooperative ? "cooperative-sticky" : "range,roundrobin"},
        /* Low bounds make librdkafka before 2.2 wait a whole second whenever they are reached. */
        {"queued.min.messages", "100000"}, {"queued.max.messages.kbytes", "65536"},
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
    if (code != ERR_OK) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    *ret = conf;
    return ERR_OK;
}

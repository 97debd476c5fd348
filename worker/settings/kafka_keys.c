#include "settings/kafka_keys.h"

#include <string.h>

const struct kafka_refusal kafka_refusals[] = {
    {"bootstrap.servers", "set kafka.bootstrap_servers instead"},
    {"metadata.broker.list", "set kafka.bootstrap_servers instead"},

    {"group.id", "set kafka.group instead"},
    {"group.instance.id", "set kafka.instance_id instead"},
    {"group.protocol", "the worker hands partitions over by the classic protocol"},
    {"partition.assignment.strategy", "the worker chooses what its librdkafka does safely"},
    {"enable.partition.eof", "the worker sets it"},
    {"enabled_events", "the worker sets it"},
    {"isolation.level", "a job of an aborted transaction was never sent"},
    {"enable.auto.commit", "an offset is committed only after its job's result"},
    {"auto.commit.enable", "an offset is committed only after its job's result"},
    {"auto.commit.interval.ms", "set commit_interval_ms instead"},
    {"enable.auto.offset.store", "an offset is committed only after its job's result"},
    {"offset.store.method", "offsets are kept by the brokers"},

    {"acks", "a result counts when all in-sync replicas have it"},
    {"request.required.acks", "a result counts when all in-sync replicas have it"},
    {"enable.idempotence", "it is always on, so that no result is written twice"},
    {"transactional.id", "the worker names its own"},
    {"delivery.report.only.error", "a job is finished by its result's acknowledgement"},
    {"queuing.strategy", "results are sent first in, first out"},
};
const size_t kafka_refusal_count = sizeof kafka_refusals / sizeof kafka_refusals[0];

const struct kafka_refusal *kafka_key_refusal(const char *key) {
    for (size_t i = 0; i < kafka_refusal_count; i++)
        if (strcmp(kafka_refusals[i].key, key) == 0) return &kafka_refusals[i];
    return NULL;
}

bool kafka_key_is_secret(const char *key) {
    static const char *const parts[] = {
        "password", "secret", "passphrase", "token", "credential", "key.pem", "oauthbearer.config"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasestr(key, parts[i]) != NULL) return true;
    return false;
}

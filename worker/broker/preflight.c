#include "broker/preflight.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/client.h"

enum {
    SLICE_MS = 100, /* how often errors are checked */
    SCRAM_VERSION =
        0x02080000, /* brokers from 3.7.2 and 3.8 on accept only its nonce and later ones */
};

struct preflight {
    const struct preflight_options *options;
    rd_kafka_t *client;
    rd_kafka_queue_t *events;
    uint64_t deadline_ns;
};

static bool uses_scram(const struct kafka_options *options) {
    for (size_t i = 0; i < options->setting_count; i++)
        if (strncmp(options->setting_keys[i], "sasl.mechanism", 14) == 0 &&
            strncasecmp(options->setting_values[i], "SCRAM-", 6) == 0)
            return true;
    return false;
}

/*
 * If the first step of a handshake fails, librdkafka reports a lost connection, with OpenSSL's
 * words.
 */
static bool is_about_tls(rd_kafka_event_t *event) {
    rd_kafka_resp_err_t native = rd_kafka_event_error(event);
    return native == RD_KAFKA_RESP_ERR__SSL ||
           (native == RD_KAFKA_RESP_ERR__TRANSPORT &&
               strstr(rd_kafka_event_error_string(event), ":SSL routines:") != NULL);
}

static const char *fix_of_refusal(const struct preflight *preflight, rd_kafka_event_t *event) {
    if (is_about_tls(event)) return "check security.protocol, ssl.ca.location and the certificates";
    if (rd_kafka_version() < SCRAM_VERSION && uses_scram(&preflight->options->kafka))
        return "check sasl.username and sasl.password; for SCRAM with Kafka 3.7.2 or newer, "
               "librdkafka must be 2.8 or newer";
    return "check sasl.mechanism, sasl.username and sasl.password";
}

/* Reads from events why the brokers refuse us, or that none answers; ERR_OK: unknown so far. */
static enum err read_events(struct preflight *preflight, struct error *err) {
    enum err code = ERR_OK;
    rd_kafka_event_t *event;
    while (code == ERR_OK && (event = rd_kafka_queue_poll(preflight->events, 0)) != NULL) {
        rd_kafka_resp_err_t native = rd_kafka_event_error(event);
        if (native == RD_KAFKA_RESP_ERR__AUTHENTICATION || is_about_tls(event))
            code = error_set(err, ERR_BROKER, native, fix_of_refusal(preflight, event),
                "the brokers refuse %s: %s", preflight->options->section,
                rd_kafka_event_error_string(event));
        else if (native == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
            code = error_set(err, ERR_TIMEOUT, native,
                "check kafka.bootstrap_servers, and that the brokers run",
                "no broker answers at %s", preflight->options->kafka.bootstrap_servers);
        rd_kafka_event_destroy(event);
    }
    return code;
}

/* Asks for metadata, of `topic` unless it is NULL, until there is an answer or none can come. */
static enum err ask(struct preflight *preflight, rd_kafka_topic_t *topic,
    const struct rd_kafka_metadata **ret, struct error *err) {
    for (;;) {
        rd_kafka_resp_err_t native = rd_kafka_metadata(preflight->client, 0, topic, ret, SLICE_MS);
        if (native == RD_KAFKA_RESP_ERR_NO_ERROR) return ERR_OK;
        enum err code = read_events(preflight, err);
        if (code != ERR_OK) return code;
        if (clock_ns() >= preflight->deadline_ns)
            return error_set(err, ERR_TIMEOUT, native,
                "check kafka.bootstrap_servers, and that the brokers run",
                "no broker answers at %s within %d ms", preflight->options->kafka.bootstrap_servers,
                preflight->options->timeout_ms);
    }
}

static enum err judge_topic(const struct preflight_options *options,
    const struct rd_kafka_metadata *metadata, struct error *err) {
    rd_kafka_resp_err_t native = metadata->topic_cnt == 1 ? metadata->topics[0].err
                                                          : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) return ERR_OK;
    return error_set(err, ERR_BROKER, native, "create it, or give the worker rights to it",
        "topic '%s' for %s: %s", options->topic, options->section, rd_kafka_err2str(native));
}

/* NULL: it is not told. */
static const char *value_of(const rd_kafka_event_t *event, const char *name) {
    size_t count, entry_count;
    const rd_kafka_DescribeConfigs_result_t *result =
        rd_kafka_event_DescribeConfigs_result((rd_kafka_event_t *)(uintptr_t)event);
    const rd_kafka_ConfigResource_t **topics =
        result != NULL ? rd_kafka_DescribeConfigs_result_resources(result, &count) : NULL;
    if (topics == NULL || count != 1) return NULL;
    const rd_kafka_ConfigEntry_t **entries =
        rd_kafka_ConfigResource_configs(topics[0], &entry_count);
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0)
            return rd_kafka_ConfigEntry_value(entries[i]);
    return NULL;
}

static enum err judge_config(
    const struct preflight_options *options, const rd_kafka_event_t *event, struct error *err) {
    const char *policy = value_of(event, "cleanup.policy");
    const char *bytes = value_of(event, "max.message.bytes");
    if (policy != NULL && strstr(policy, "compact") != NULL)
        return error_set(err, ERR_BROKER, 0, "set its cleanup.policy to delete",
            "topic '%s' is compacted: it refuses results without a key, and keeps only the last "
            "one of each key",
            options->topic);
    if (bytes != NULL && strtoull(bytes, NULL, 10) < options->result_bytes)
        return error_set(err, ERR_BROKER, 0, "raise its max.message.bytes, or lower the limit",
            "topic '%s' takes messages of %s bytes at most, and limits.result_bytes is %" PRIu64,
            options->topic, bytes, options->result_bytes);
    return ERR_OK;
}

static enum err check_config(struct preflight *preflight, struct error *err) {
    rd_kafka_queue_t *answers = rd_kafka_queue_new(preflight->client);
    rd_kafka_ConfigResource_t *topic =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, preflight->options->topic);
    rd_kafka_DescribeConfigs(preflight->client, &topic, 1, NULL, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, preflight->options->timeout_ms);
    enum err code = event != NULL ? judge_config(preflight->options, event, err) : ERR_OK;
    if (event != NULL) rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(topic);
    rd_kafka_queue_destroy(answers);
    return code;
}

static enum err check_topic(struct preflight *preflight, struct error *err) {
    const char *name = preflight->options->topic;
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(preflight->client, name, NULL);
    if (topic == NULL)
        return error_set(err, ERR_CONFIG, rd_kafka_last_error(), "give it a name that Kafka takes",
            "topic '%s': %s", name, rd_kafka_err2str(rd_kafka_last_error()));
    enum err code = ask(preflight, topic, &metadata, err);
    if (code == ERR_OK) {
        code = judge_topic(preflight->options, metadata, err);
        rd_kafka_metadata_destroy(metadata);
    }
    if (code == ERR_OK && preflight->options->result_bytes > 0) code = check_config(preflight, err);
    rd_kafka_topic_destroy(topic);
    return code;
}

static enum err greet(struct preflight *preflight, struct error *err) {
    if (preflight->options->topic != NULL) return check_topic(preflight, err);
    const struct rd_kafka_metadata *metadata;
    enum err code = ask(preflight, NULL, &metadata, err);
    if (code == ERR_OK) rd_kafka_metadata_destroy(metadata);
    return code;
}

/* Opens a consumer for either section, because a producer that asks for a topic may create it. */
static enum err open_client(struct preflight *preflight, struct error *err) {
    static const struct client_setting defaults[] = {{"client.id", "gpu-worker"}, {NULL, NULL}};
    static const struct client_setting required[] = {
        {"allow.auto.create.topics", "false"}, {"log.queue", "true"}, {NULL, NULL}};
    rd_kafka_conf_t *conf;
    const struct preflight_options *options = preflight->options;
    enum err code =
        client_conf_create(&options->kafka, options->section, defaults, required, &conf, err);
    if (code != ERR_OK) return code;
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
    code = client_create(RD_KAFKA_CONSUMER, conf, options->section, &preflight->client, err);
    if (code == ERR_OK) preflight->events = rd_kafka_queue_get_main(preflight->client);
    return code;
}

enum err preflight(const struct preflight_options *options, struct error *err) {
    struct preflight preflight = {
        .options = options, .deadline_ns = clock_ns_in((uint64_t)options->timeout_ms)};
    enum err code = open_client(&preflight, err);
    if (code != ERR_OK) return code;
    code = greet(&preflight, err);
    rd_kafka_queue_destroy(preflight.events);
    client_destroy(preflight.client);
    return code;
}

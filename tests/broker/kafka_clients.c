/* What kafka_harness.h has of clients, of whatever broker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/kafka_harness.h"
#include "support/wait.h"
#include "testing.h"

static void ignore_log(
    const rd_kafka_t *client, int level, const char *facility, const char *line) {}

/* What a topic does not take would be missed elsewhere, much later. */
static void must_be_delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("producing to %s [%d]: %s", rd_kafka_topic_name(message->rkt),
            (int)message->partition, rd_kafka_err2str(message->err));
}

rd_kafka_t *kafka_client(
    rd_kafka_type_t type, const char *bootstrap, const char *key, const char *value) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, why, sizeof why);
    if (type == RD_KAFKA_CONSUMER)
        rd_kafka_conf_set(conf, "enable.partition.eof", "true", why, sizeof why);
    else rd_kafka_conf_set_dr_msg_cb(conf, must_be_delivered);
    if (key != NULL) rd_kafka_conf_set(conf, key, value, why, sizeof why);
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (client == NULL) fail_msg("%s", why);
    return client;
}

static rd_kafka_t *group_client(const struct broker *broker) {
    return kafka_client(RD_KAFKA_CONSUMER, broker->bootstrap, "group.id", broker->group);
}

static uint64_t patience_ns(void) {
    return clock_ns() + (uint64_t)KAFKA_PATIENCE_MS * 1000000u;
}

/* The first group of a broker makes it the coordinator, which takes it a while. */
static bool is_starting(rd_kafka_resp_err_t code) {
    return code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
           code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

int64_t broker_committed_metadata(
    const struct broker *broker, int32_t partition, char *text, size_t size) {
    rd_kafka_t *member = group_client(broker);
    rd_kafka_topic_partition_list_t *asked = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(asked, broker->jobs, partition);
    uint64_t deadline_ns = patience_ns();
    rd_kafka_resp_err_t code;
    do code = rd_kafka_committed(member, asked, KAFKA_PATIENCE_MS);
    while (is_starting(code) && clock_ns() < deadline_ns);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) fail_msg("committed: %s", rd_kafka_err2str(code));
    const rd_kafka_topic_partition_t *found = &asked->elems[0];
    int64_t offset = found->offset;
    snprintf(text, size, "%.*s", (int)found->metadata_size,
        found->metadata != NULL ? (const char *)found->metadata : "");
    char *id = strstr(text, " topic=");
    char *after = id != NULL ? strchr(id + 1, ' ') : NULL;
    if (after != NULL) memmove(id, after, strlen(after) + 1);
    rd_kafka_topic_partition_list_destroy(asked);
    rd_kafka_destroy(member);
    return offset >= 0 ? offset : -1;
}

int64_t broker_committed(const struct broker *broker, int32_t partition) {
    char text[1];
    return broker_committed_metadata(broker, partition, text, sizeof text);
}

void broker_commit(
    const struct broker *broker, int32_t partition, int64_t offset, const char *metadata) {
    rd_kafka_t *member = group_client(broker);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *element =
        rd_kafka_topic_partition_list_add(list, broker->jobs, partition);
    element->offset = offset;
    element->metadata = strdup(metadata);
    element->metadata_size = strlen(metadata);
    uint64_t deadline_ns = patience_ns();
    rd_kafka_resp_err_t code;
    do code = rd_kafka_commit(member, list, 0);
    while (is_starting(code) && clock_ns() < deadline_ns);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) fail_msg("commit: %s", rd_kafka_err2str(code));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(member);
}

int broker_count_results(const struct broker *broker) {
    rd_kafka_t *client = group_client(broker);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, broker->results, 0)->offset = 0;
    rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_message_t *message;
    int count = 0;
    for (bool at_end = false; !at_end; rd_kafka_message_destroy(message)) {
        message = rd_kafka_consumer_poll(client, KAFKA_PATIENCE_MS);
        assert_non_null(message);
        at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !at_end)
            fail_msg("%s", rd_kafka_message_errstr(message));
        count += !at_end;
    }
    rd_kafka_destroy(client);
    return count;
}

int64_t broker_end(const struct broker *broker, int32_t partition) {
    int64_t low, high;
    rd_kafka_t *client = kafka_client(RD_KAFKA_CONSUMER, broker->bootstrap, NULL, NULL);
    assert_int_equal(rd_kafka_query_watermark_offsets(
                         client, broker->jobs, partition, &low, &high, KAFKA_PATIENCE_MS),
        RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(client);
    return high;
}

void broker_wait_for_commit(
    struct source *source, const struct broker *broker, int32_t partition, int64_t offset) {
    struct position position;
    WAIT_DOING(broker_committed(broker, partition), ==, offset,
        assert_false(consumer_take(source, &position)));
}

void events_note(void *context, enum log_level level, const char *what, const struct error *err) {
    struct events *events = context;
    if (getenv("KAFKA_TEST_VERBOSE") != NULL)
        fprintf(stderr, "%d %s %s\n", (int)level, what, err != NULL ? err->message : "");
    if (level == LOG_DEBUG) return;
    events->count++;
    if (level >= LOG_WARN) events->warnings++;
    if ((int)level > events->worst_level) events->worst_level = (int)level;
    if (err == NULL) snprintf(events->last_fact, sizeof events->last_fact, "%s", what);
    if (err == NULL) return;
    events->errors++;
    events->last_native = err->native;
    snprintf(events->last_error, sizeof events->last_error, "%s", err->message);
}

/* Keys and values apart, as the options want them. */
struct split {
    size_t count;
    char *keys[16], *values[16];
};

static void add_settings(struct split *split, const struct setting *settings) {
    for (; settings != NULL && settings->key != NULL; settings++) {
        split->keys[split->count] = settings->key;
        split->values[split->count++] = settings->value;
    }
}

static struct kafka_options options_of(
    const struct broker *broker, struct events *events, const struct split *split) {
    return (struct kafka_options){.bootstrap_servers = broker->bootstrap,
        .setting_count = split->count,
        .setting_keys = split->keys,
        .setting_values = split->values,
        .on_event = events_note,
        .context = events};
}

enum commits { COMMITS_HERE, COMMITS_ELSEWHERE };

static struct source *start_consumer(const struct broker *broker, struct events *events,
    const struct setting *settings, uint32_t drain_timeout_ms, enum commits commits) {
    /* Nobody is put out of its group because this machine had no time for it. */
    const struct setting patient[] = {
        {"session.timeout.ms", "120000"}, {"heartbeat.interval.ms", "500"}, {NULL, NULL}};
    struct split split = {0};
    add_settings(&split, patient);
    add_settings(&split, settings);
    static uint64_t owner; /* each is another one: a claim that is repeated takes nothing over */
    char *topics[] = {(char *)(uintptr_t)broker->jobs};
    struct consumer_options options = {.kafka = options_of(broker, events, &split),
        .group = broker->group,
        .owner = ++owner,
        .fetch_ahead_bytes = 64 << 20,
        .topic_count = 1,
        .topics = topics,
        .commits_elsewhere = commits == COMMITS_ELSEWHERE,
        .commit_interval_ms = 50,
        .drain_timeout_ms = drain_timeout_ms};
    struct source *source = NULL;
    struct error err = {.message = ""};
    if (consumer_create(&options, &source, &err) != ERR_OK) fail_msg("%s", err.message);
    return source;
}

const struct setting kafka_short_session[] = {{"session.timeout.ms", "6000"}, {NULL, NULL}};

struct source *consumer_start(
    const struct broker *broker, struct events *events, const struct setting *settings) {
    return start_consumer(broker, events, settings, KAFKA_PATIENCE_MS, COMMITS_HERE);
}

struct source *consumer_start_draining(
    const struct broker *broker, struct events *events, uint32_t drain_timeout_ms) {
    return start_consumer(broker, events, NULL, drain_timeout_ms, COMMITS_HERE);
}

struct source *consumer_start_for_transactions(
    const struct broker *broker, struct events *events, const struct setting *settings) {
    return start_consumer(broker, events, settings, KAFKA_PATIENCE_MS, COMMITS_ELSEWHERE);
}

void consumer_stop(struct source *source) {
    struct error err = {.message = ""};
    if (source_close(source, KAFKA_PATIENCE_MS, &err) != ERR_OK) fail_msg("%s", err.message);
    source_destroy(source);
}

bool consumer_take(struct source *source, struct position *ret) {
    struct delivery *delivery = NULL;
    struct error err = {.message = ""};
    bool at_end;
    if (source_poll(source, KAFKA_POLL_MS, &delivery, &at_end, &err) != ERR_OK)
        fail_msg("%s", err.message);
    assert_false(at_end);
    if (delivery == NULL) return false;
    *ret = delivery->position;
    delivery_destroy(delivery);
    return true;
}

void consumer_take_many(struct source *source, struct position *positions, size_t count) {
    size_t taken = 0;
    WAIT_DOING(taken, ==, count, taken += consumer_take(source, &positions[taken]));
}

enum err consumer_fail(struct source *source, struct error *err) {
    enum err code = ERR_OK;
    WAIT_DOING(code, !=, ERR_OK, {
        struct delivery *delivery;
        bool at_end;
        code = source_poll(source, KAFKA_POLL_MS, &delivery, &at_end, err);
        assert_null(delivery);
    });
    return code;
}

struct sink *producer_start(
    const struct broker *broker, struct events *events, const struct setting *settings) {
    struct split split = {0};
    add_settings(&split, settings);
    struct producer_options options = {.kafka = options_of(broker, events, &split),
        .results_topic = broker->results,
        .dead_letters_topic = broker->results};
    struct sink *sink = NULL;
    struct error err = {.message = ""};
    if (producer_create(&options, &sink, &err) != ERR_OK) fail_msg("%s", err.message);
    return sink;
}

void sent_note(struct record *record, enum err code, const struct error *err) {
    struct sent *sent = (struct sent *)record;
    sent->settled_count++;
    sent->code = code;
    if (err != NULL) sent->err = *err;
}

void sent_wait(struct sink *sink, const struct sent *sent) {
    WAIT_DOING(sent->settled_count, >, 0, sink_serve(sink, KAFKA_POLL_MS));
}

#include "broker/producer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "broker/client.h"
#include "broker/clients.h"
#include "broker/resends.h"
#include "broker/spread.h"

#define SECTION "kafka.producer"

enum { ROOM_WAIT_MS = 100 };

struct producer {
    struct sink sink;
    struct client_events events;
    rd_kafka_t *client;
    rd_kafka_queue_t *queue; /* delivery reports, errors, log lines */
    const char *topics[ROUTE_COUNT];
    struct spread spread;
    size_t unsettled_count, out_count; /* and those of them that the client has */
    struct resends resends;
    bool is_transactional; /* a refusal ends the transaction, and its owner sends again */
    uint64_t trouble_count;
};

/* "a different record in the batch was invalid": since librdkafka 2.3 */
#define DIFFERENT_RECORD ((rd_kafka_resp_err_t)-138)

bool producer_is_about_batch(rd_kafka_resp_err_t code) {
    switch ((int)code) {
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case DIFFERENT_RECORD: return true;
    default: return false;
    }
}

bool producer_is_about_topic(rd_kafka_resp_err_t code) {
    switch (code) {
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return true;
    default: return false;
    }
}

/* True if the reason is the record or its topic: sending it again cannot help. */
bool producer_is_final(rd_kafka_resp_err_t code) {
    switch (code) {
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
    case RD_KAFKA_RESP_ERR__INVALID_ARG: return true;
    default: return producer_is_about_batch(code) || producer_is_about_topic(code);
    }
}

static const char *fix_of_refusal(rd_kafka_resp_err_t native) {
    if (native == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP) return "set this machine's clock";
    return native == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE
               ? "raise max.message.bytes of the topic"
               : "check that the topic exists, and that the worker may write to it";
}

/*
 * The operator is responsible for the configured topics and this machine's clock; a topic that a
 * record names itself concerns only that record.
 */
static enum err blame(const struct record *record, rd_kafka_resp_err_t native) {
    bool is_operators = native == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP ||
                        (record->topic == NULL && producer_is_about_topic(native));
    return is_operators ? ERR_BROKER : ERR_PUBLISH_REFUSED;
}

static const char *topic_of(const struct producer *producer, const struct record *record) {
    return record->topic != NULL ? record->topic : producer->topics[record->route];
}

void producer_refuse(const struct sink *sink, const struct record *record,
    rd_kafka_resp_err_t native, const char *reason, struct error *err) {
    const struct producer *producer = (const struct producer *)sink;
    error_set(err, blame(record, native), native, fix_of_refusal(native),
        "%s refused a message of %zu bytes: %s", topic_of(producer, record), record->payload.size,
        reason);
}

/* --- partitions --- */

enum { NO_PARTITION = -1 };

/* The record leaves the partition that was chosen for it, if one was. */
static void leave_partition(struct producer *producer, struct record *record) {
    if (record->partition != NO_PARTITION) spread_settle(&producer->spread, record->partition);
    record->partition = NO_PARTITION;
}

/* librdkafka's partitioner. It may ask again, if the topic has other partitions meanwhile. */
static int32_t choose_partition(const rd_kafka_topic_t *topic, const void *key, size_t key_size,
    int32_t count, void *producer_of_topic, void *record_of_message) {
    struct producer *producer = producer_of_topic;
    struct record *record = record_of_message;
    if (key != NULL) /* "" as well, whose records librdkafka would scatter */
        return rd_kafka_msg_partitioner_consistent(topic, key, key_size, count, producer, record);
    leave_partition(producer, record);
    record->partition = spread_choose(
        &producer->spread, clock_ns(), topic, count, rd_kafka_topic_partition_available);
    return record->partition;
}

/* Records without a key go where `spread` says, unless the user has a wish. */
static enum err use_spread(struct producer *producer, const struct kafka_options *options,
    rd_kafka_conf_t *conf, struct error *err) {
    if (kafka_options_have(options, "partitioner") ||
        kafka_options_have(options, "sticky.partitioning.linger.ms"))
        return ERR_OK;
    rd_kafka_topic_conf_t *topics = rd_kafka_conf_get_default_topic_conf(conf);
    if (topics == NULL) {
        topics = rd_kafka_topic_conf_new();
        rd_kafka_conf_set_default_topic_conf(conf, topics);
    }
    rd_kafka_topic_conf_set_opaque(topics, producer);
    rd_kafka_topic_conf_set_partitioner_cb(topics, choose_partition);
    /* otherwise librdkafka does not ask for records without a key */
    return client_conf_set(conf, SECTION, "sticky.partitioning.linger.ms", "0", err);
}

/* --- records --- */

static void settle(struct producer *producer, struct record *record, rd_kafka_resp_err_t native,
    const char *reason) {
    INVARIANT(producer->unsettled_count > 0, "a record is settled only once");
    producer->unsettled_count--;
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) {
        record->on_settled(record, ERR_OK, NULL);
        return;
    }
    struct error err;
    if (producer_is_final(native)) producer_refuse(&producer->sink, record, native, reason, &err);
    else client_lost(&err, native, reason);
    record->on_settled(record, err.code, &err);
}

/* True: the record is sent again, as others may be to blame. Where no memory is left for that, it
 * is not refused for what others may have caused. */
static bool waits_again(
    struct producer *producer, struct record *record, rd_kafka_resp_err_t *native) {
    bool is_refused = producer_is_about_batch(*native) && !producer->is_transactional;
    if (producer->resends.group_count > 0)
        return !resends_report(&producer->resends, record, is_refused);
    if (!is_refused || resends_add(&producer->resends, record)) return is_refused;
    *native = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    return false;
}

static void settle_reported(struct producer *producer, rd_kafka_event_t *event) {
    const rd_kafka_message_t *message;
    while ((message = rd_kafka_event_message_next(event)) != NULL) {
        struct record *record = message->_private;
        rd_kafka_resp_err_t native = message->err;
        producer->out_count--;
        leave_partition(producer, record);
        if (waits_again(producer, record, &native)) continue;
        record->partition = message->partition;
        record->offset = message->offset;
        settle(producer, record, native,
            rd_kafka_err2str(native)); /* the message's own text would be the payload */
    }
}

static void report_log(const struct producer *producer, rd_kafka_event_t *event) {
    const char *facility, *line;
    int level;
    if (rd_kafka_event_log(event, &facility, &line, &level) == 0)
        client_say(&producer->events, LOG_DEBUG, "%s: %s", facility, line);
}

/* Handles one event of librdkafka; false if none came in time. */
static bool handle_event(struct producer *producer, int timeout_ms) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(producer->queue, timeout_ms);
    if (event == NULL) return false;
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR: settle_reported(producer, event); break;
    case RD_KAFKA_EVENT_ERROR:
        producer->trouble_count++;
        client_report(
            &producer->events, rd_kafka_event_error(event), rd_kafka_event_error_string(event));
        break;
    case RD_KAFKA_EVENT_LOG: report_log(producer, event); break;
    default: break;
    }
    rd_kafka_event_destroy(event);
    return true;
}

/* NULL if memory is short. */
static rd_kafka_headers_t *headers_of(const struct record *record) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new(record->header_count);
    for (size_t i = 0; i < record->header_count; i++) {
        struct slice name = record->headers[i].name, value = record->headers[i].value;
        rd_kafka_header_add(
            headers, (const char *)name.data, (ssize_t)name.size, value.data, (ssize_t)value.size);
    }
    return headers;
}

/*
 * Headers are passed as a list, which stays ours if producing fails: librdkafka before 2.12 frees
 * single headers twice in that case. No message flag is set, so payload and key are not copied.
 */
static rd_kafka_resp_err_t produce(struct producer *producer, struct record *record) {
    static const uint8_t no_bytes[1]; /* NULL would be no key */
    rd_kafka_headers_t *headers = headers_of(record);
    rd_kafka_vu_t parts[] = {{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic_of(producer, record)},
        {.vtype = RD_KAFKA_VTYPE_VALUE,
            .u.mem = {(void *)(uintptr_t)record->payload.data, record->payload.size}},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = record},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
        {.vtype = RD_KAFKA_VTYPE_KEY,
            .u.mem = {(void *)(uintptr_t)(record->key.size > 0 ? record->key.data : no_bytes),
                record->key.size}}};
    size_t count = sizeof parts / sizeof parts[0] - (record->has_key ? 0 : 1);
    rd_kafka_error_t *error = rd_kafka_produceva(producer->client, parts, count);
    if (error == NULL) return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    rd_kafka_headers_destroy(headers);
    return code;
}

static void hand_over(struct producer *producer, struct record *record) {
    record->partition = NO_PARTITION;
    producer->out_count++;
    rd_kafka_resp_err_t code;
    while ((code = produce(producer, record)) == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        handle_event(producer, ROOM_WAIT_MS);
        pulse_busy(); /* waiting for room may take long, if brokers are away */
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    producer->out_count--;
    leave_partition(producer, record);
    if (producer->resends.group_count > 0) (void)!resends_report(&producer->resends, record, false);
    settle(producer, record, code, rd_kafka_err2str(code));
}

/* A group is sent while the client has nothing else. */
static void send_again(struct producer *producer) {
    struct record *record;
    if (producer->out_count > 0) return;
    while ((record = resends_next(&producer->resends)) != NULL) hand_over(producer, record);
}

static bool serve_event(struct producer *producer, int timeout_ms) {
    bool was_any = handle_event(producer, timeout_ms);
    send_again(producer);
    return was_any;
}

static void producer_send(struct sink *sink, struct record *record) {
    struct producer *producer = (struct producer *)sink;
    producer->unsettled_count++;
    if (!resends_are_any(&producer->resends)) hand_over(producer, record);
    else if (!resends_add(&producer->resends, record))
        settle(producer, record, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "no memory to send again");
}

static void producer_serve(struct sink *sink, int timeout_ms) {
    struct producer *producer = (struct producer *)sink;
    while (serve_event(producer, timeout_ms)) timeout_ms = 0;
}

static enum err producer_flush(struct sink *sink, int timeout_ms, struct error *err) {
    struct producer *producer = (struct producer *)sink;
    uint64_t deadline_ns = clock_ns_in((uint64_t)timeout_ms);
    while (producer->unsettled_count > 0) {
        uint64_t now_ns = clock_ns();
        if (timeout_ms >= 0 && now_ns >= deadline_ns)
            return error_set(err, ERR_TIMEOUT, 0, "check that the brokers can be reached",
                "%zu messages were not acknowledged within %d ms", producer->unsettled_count,
                timeout_ms);
        serve_event(producer, timeout_ms < 0 ? -1 : (int)((deadline_ns - now_ns) / 1000000u) + 1);
    }
    return ERR_OK;
}

/*
 * Purges what is not settled. A purged record is reported like any other, which settles it with
 * ERR_BROKER.
 */
static void take_back_unsettled(struct producer *producer) {
    while (producer->unsettled_count > 0) {
        struct record *record;
        while ((record = resends_take_waiting(&producer->resends)) != NULL)
            settle(producer, record, RD_KAFKA_RESP_ERR__PURGE_QUEUE, "the producer ends");
        rd_kafka_purge(producer->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        serve_event(producer, ROOM_WAIT_MS);
    }
}

static void producer_destroy(struct sink *sink) {
    struct producer *producer = (struct producer *)sink;
    take_back_unsettled(producer);
    if (producer->queue != NULL) rd_kafka_queue_destroy(producer->queue);
    client_destroy(producer->client);
    spread_fini(&producer->spread);
    resends_fini(&producer->resends);
    free(producer);
}

/*
 * A record for a missing topic holds up all that waits for it, such as suspects. The client's
 * default of 30 s is too long, and longer than a transaction.
 */
#define TOPIC_WAIT_MS "5000"
#define LINGER_MS "1" /* SPREAD_TURN_MS, too: a batch has the records of a turn */
static const struct client_setting plain_defaults[] = {{"client.id", "gpu-worker"},
    {"linger.ms", LINGER_MS}, {"message.timeout.ms", "0"},
    {"topic.metadata.propagation.max.ms", TOPIC_WAIT_MS}, {NULL, NULL}};
/*
 * In a transaction nothing may wait longer than transaction.timeout.ms, from which librdkafka
 * derives message.timeout.ms.
 */
static const struct client_setting transactional_defaults[] = {{"client.id", "gpu-worker"},
    {"linger.ms", LINGER_MS}, {"transaction.timeout.ms", "10000"},
    {"topic.metadata.propagation.max.ms", TOPIC_WAIT_MS}, {NULL, NULL}};

static enum err conf_create(struct producer *producer, const struct producer_options *options,
    rd_kafka_conf_t **ret, struct error *err) {
    const char *id = options->transactional_id;
    const struct client_setting required[] = {{"enable.idempotence", "true"}, {"log.queue", "true"},
        {id != NULL ? "transactional.id" : NULL, id}, {NULL, NULL}};
    rd_kafka_conf_t *conf;
    enum err code = client_conf_create(&options->kafka, SECTION,
        id != NULL ? transactional_defaults : plain_defaults, required, &conf, err);
    if (code == ERR_OK) code = use_spread(producer, &options->kafka, conf, err);
    if (code != ERR_OK) return code;
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG);
    *ret = conf;
    return ERR_OK;
}

/* Topics that were asked for stay in the client's cache. */
static void learn_topics(rd_kafka_t *client, int timeout_ms) {
    const struct rd_kafka_metadata *topics;
    if (timeout_ms > 0 &&
        rd_kafka_metadata(client, 1, NULL, &topics, timeout_ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(topics);
}

enum err producer_create(
    const struct producer_options *options, struct sink **ret, struct error *err) {
    static const struct sink_operations operations = {.send = producer_send,
        .serve = producer_serve,
        .flush = producer_flush,
        .destroy = producer_destroy};
    struct producer *producer = calloc(1, sizeof *producer);
    if (producer == NULL) return error_no_memory(err, "no memory for a producer");
    producer->sink.operations = &operations;
    spread_init(&producer->spread);
    producer->is_transactional = options->transactional_id != NULL;
    producer->topics[ROUTE_RESULT] = options->results_topic;
    producer->topics[ROUTE_DEAD_LETTER] = options->dead_letters_topic;
    producer->topics[ROUTE_TELEMETRY] = options->telemetry_topic;
    producer->topics[ROUTE_PROGRESS] = options->progress_topic;
    producer->events = (struct client_events){.on_event = options->kafka.on_event,
        .context = options->kafka.context,
        .name = "kafka producer"};

    rd_kafka_conf_t *conf;
    enum err code = conf_create(producer, options, &conf, err);
    if (code != ERR_OK) goto fail;
    code = client_create(RD_KAFKA_PRODUCER, conf, SECTION, &producer->client, err);
    if (code != ERR_OK) goto fail;
    rd_kafka_set_log_queue(producer->client, NULL);
    producer->queue = rd_kafka_queue_get_main(producer->client);
    learn_topics(producer->client, options->topics_timeout_ms);
    *ret = &producer->sink;
    return ERR_OK;
fail:
    producer_destroy(&producer->sink);
    return code;
}

uint64_t producer_trouble_count(const struct sink *sink) {
    return ((const struct producer *)sink)->trouble_count;
}

rd_kafka_t *producer_client(const struct sink *sink) {
    return ((const struct producer *)sink)->client;
}

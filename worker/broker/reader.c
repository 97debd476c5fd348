#include "broker/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/client.h"

/* A name for the client's own use: it joins no group and commits nothing. */
static const struct client_setting defaults[] = {{"client.id", "gpu-worker-reader"},
    {"group.id", "gpu-worker-reader"}, {"fetch.wait.max.ms", "50"}, {NULL, NULL}};
static const struct client_setting required[] = {{"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"}, {"log.queue", "true"}, {NULL, NULL}};

enum { ASK_AGAIN_MS = 100 };

struct reader {
    char *topic; /* positions point here */
    rd_kafka_t *client;
    struct client_events events;
};

static int remaining_ms(uint64_t until_ns) {
    uint64_t now = clock_ns();
    return now < until_ns ? (int)((until_ns - now) / 1000000u) + 1 : 1;
}

/* A topic that was made just now is not known everywhere yet: asking again helps. */
static bool is_passing(rd_kafka_resp_err_t native) {
    return native == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           native == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
           native == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
}

static rd_kafka_resp_err_t add_partitions(struct reader *reader,
    const rd_kafka_metadata_topic_t *metadata, enum reader_start start, uint64_t until_ns,
    rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < metadata->partition_cnt; i++) {
        int32_t partition = metadata->partitions[i].id;
        int64_t low = 0, high = 0;
        rd_kafka_resp_err_t native = rd_kafka_query_watermark_offsets(
            reader->client, reader->topic, partition, &low, &high, remaining_ms(until_ns));
        if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return native;
        rd_kafka_topic_partition_list_add(list, reader->topic, partition)->offset =
            start == READER_FROM_BEGINNING ? low : high;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Where to read each partition of the topic, now. */
static rd_kafka_resp_err_t find_offsets(struct reader *reader, enum reader_start start,
    uint64_t until_ns, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_t *handle = rd_kafka_topic_new(reader->client, reader->topic, NULL);
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t native =
        rd_kafka_metadata(reader->client, 0, handle, &metadata, remaining_ms(until_ns));
    if (handle != NULL) rd_kafka_topic_destroy(handle);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return native;
    native = metadata->topic_cnt == 1 ? metadata->topics[0].err
                                      : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR)
        native = add_partitions(reader, &metadata->topics[0], start, until_ns, list);
    rd_kafka_metadata_destroy(metadata);
    return native;
}

static enum err describe(
    const struct reader *reader, rd_kafka_resp_err_t native, struct error *err) {
    if (is_passing(native))
        return error_set(err, ERR_BROKER, native, "create the topic, or name another",
            "topic '%s': %s", reader->topic, rd_kafka_err2str(native));
    return error_set(err, ERR_BROKER, native,
        "check kafka.bootstrap_servers, and that the brokers run", "cannot reach the brokers: %s",
        rd_kafka_err2str(native));
}

static enum err assign(
    struct reader *reader, enum reader_start start, int timeout_ms, struct error *err) {
    uint64_t until_ns = clock_ns() + (uint64_t)timeout_ms * 1000000u;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t native = find_offsets(reader, start, until_ns, list);
    while (is_passing(native) && clock_ns() < until_ns) {
        rd_kafka_poll(reader->client, ASK_AGAIN_MS);
        rd_kafka_topic_partition_list_destroy(list);
        list = rd_kafka_topic_partition_list_new(1);
        native = find_offsets(reader, start, until_ns, list);
    }
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) native = rd_kafka_assign(reader->client, list);
    rd_kafka_topic_partition_list_destroy(list);
    return native == RD_KAFKA_RESP_ERR_NO_ERROR ? ERR_OK : describe(reader, native, err);
}

enum err reader_create(const struct kafka_options *options, const char *topic,
    enum reader_start start, int timeout_ms, struct reader **ret, struct error *err) {
    rd_kafka_conf_t *conf = NULL;
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a reader");
    reader->events = (struct client_events){
        .on_event = options->on_event, .context = options->context, .name = "kafka reader"};
    reader->topic = strdup(topic);
    enum err code = ERR_OK;
    if (reader->topic == NULL)
        code = error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a reader");
    if (code == ERR_OK)
        code = client_conf_create(options, "kafka.consumer", defaults, required, &conf, err);
    if (code == ERR_OK)
        code = client_create(RD_KAFKA_CONSUMER, conf, "kafka.consumer", &reader->client, err);
    if (code == ERR_OK) {
        rd_kafka_poll_set_consumer(reader->client);
        code = assign(reader, start, timeout_ms, err);
    }
    if (code == ERR_OK) *ret = reader;
    else reader_destroy(reader);
    return code;
}

void reader_destroy(struct reader *reader) {
    if (reader == NULL) return;
    if (reader->client != NULL) {
        rd_kafka_consumer_close(reader->client);
        rd_kafka_destroy(reader->client);
    }
    free(reader->topic);
    free(reader);
}

enum err reader_poll(
    struct reader *reader, int timeout_ms, struct delivery **ret, struct error *err) {
    *ret = NULL;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(reader->client, timeout_ms);
    if (message == NULL) return ERR_OK;
    enum err code = ERR_OK;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *ret = client_copy_message(message);
        if (*ret != NULL)
            (*ret)->position = (struct position){
                .topic = reader->topic, .partition = message->partition, .offset = message->offset};
        else
            code = error_set(
                err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a message");
    } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        client_report(&reader->events, message->err, rd_kafka_message_errstr(message));
    }
    rd_kafka_message_destroy(message);
    return code;
}

#include "broker/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/client.h"
#include "broker/topic_ids.h"

/* The client requires a group's name, but joins no group and commits nothing. */
static const struct client_setting defaults[] = {{"client.id", "gpu-worker-reader"},
    {"group.id", "gpu-worker-reader"}, {"fetch.wait.max.ms", "50"},
    {"auto.offset.reset", "earliest"}, {NULL, NULL}};
static const struct client_setting required[] = {{"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"}, {"enable.partition.eof", "true"}, {"log.queue", "true"},
    {NULL, NULL}};

enum {
    ASK_AGAIN_MS = 100,
    LOOK_MS = 2000,     /* how often it is looked whether the topic has changed */
    LOOK_WAIT_MS = 500, /* for an answer */
    ASK_MS = 1000       /* of one that was created without waiting, within a poll */
};

/* Where a partition ended when the reader was created, and where it goes on. */
struct reader_end {
    int64_t offset;
    bool is_reached;
    int64_t next;
};

struct reader {
    char *topic; /* positions point here */
    rd_kafka_t *client;
    struct client_events events;
    uint64_t from_unix_ms;
    bool is_placed; /* the brokers have said where it starts */
    int32_t partition_count;
    struct reader_end *ends;
    uint64_t next_look_ns;
    bool is_gone; /* the topic, when it was last looked */
    struct topic_ids ids;
    char id[TOPIC_ID_SIZE];    /* of the topic that is read; "": it was not told yet */
    rd_kafka_queue_t *answers; /* about ids */
    bool asks_ids;             /* this librdkafka can */
};

static int remaining_ms(uint64_t until_ns) {
    uint64_t now = clock_ns();
    return now < until_ns ? (int)((until_ns - now) / 1000000u) + 1 : 1;
}

/* A topic that was just created is not known to all brokers yet; asking again helps. */
static bool is_passing(rd_kafka_resp_err_t native) {
    return native == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           native == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
           native == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
}

/* The first offset of a partition at or after its time; `high` if there is none. */
static rd_kafka_resp_err_t find_time(
    struct reader *reader, int32_t partition, int64_t high, uint64_t until_ns, int64_t *ret) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *p =
        rd_kafka_topic_partition_list_add(one, reader->topic, partition);
    p->offset = (int64_t)reader->from_unix_ms;
    rd_kafka_resp_err_t native =
        rd_kafka_offsets_for_times(reader->client, one, remaining_ms(until_ns));
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) native = p->err;
    *ret = p->offset >= 0 ? p->offset : high;
    rd_kafka_topic_partition_list_destroy(one);
    return native;
}

static rd_kafka_resp_err_t add_partition(struct reader *reader, int32_t partition,
    uint64_t until_ns, rd_kafka_topic_partition_list_t *list) {
    int64_t low = 0, high = 0, start = 0;
    rd_kafka_resp_err_t native = rd_kafka_query_watermark_offsets(
        reader->client, reader->topic, partition, &low, &high, remaining_ms(until_ns));
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return native;
    if (reader->from_unix_ms == READER_FROM_BEGINNING) start = low;
    else if (reader->from_unix_ms == READER_FROM_NOW) start = high;
    else native = find_time(reader, partition, high, until_ns, &start);
    rd_kafka_topic_partition_list_add(list, reader->topic, partition)->offset = start;
    reader->ends[partition] =
        (struct reader_end){.offset = high, .is_reached = start >= high, .next = start};
    return native;
}

static rd_kafka_resp_err_t add_partitions(struct reader *reader, int32_t count, uint64_t until_ns,
    rd_kafka_topic_partition_list_t *list) {
    rd_kafka_resp_err_t native = RD_KAFKA_RESP_ERR_NO_ERROR;
    free(reader->ends);
    reader->partition_count = count;
    reader->ends = calloc((size_t)count, sizeof reader->ends[0]);
    if (reader->ends == NULL) return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    for (int32_t i = 0; i < reader->partition_count && native == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        native = add_partition(reader, i, until_ns, list);
    return native;
}

static rd_kafka_resp_err_t count_partitions(
    const struct reader *reader, uint64_t until_ns, int32_t *ret) {
    rd_kafka_topic_t *handle = rd_kafka_topic_new(reader->client, reader->topic, NULL);
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t native =
        rd_kafka_metadata(reader->client, 0, handle, &metadata, remaining_ms(until_ns));
    if (handle != NULL) rd_kafka_topic_destroy(handle);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return native;
    native = metadata->topic_cnt == 1 ? metadata->topics[0].err
                                      : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) *ret = metadata->topics[0].partition_cnt;
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

bool reader_missed_brokers(const struct error *err) {
    return err->code == ERR_BROKER && (err->native == RD_KAFKA_RESP_ERR__TIMED_OUT ||
                                          err->native == RD_KAFKA_RESP_ERR__TRANSPORT ||
                                          err->native == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
}

static void begin_anew(struct reader *reader) {
    client_say(&reader->events, LOG_WARN,
        "%s was deleted and created anew; it is read from its start", reader->topic);
    rd_kafka_queue_destroy(reader->answers); /* with those about the topic before */
    reader->answers = rd_kafka_queue_new(reader->client);
    reader->id[0] = 0;
    reader->from_unix_ms = READER_FROM_BEGINNING;
    reader->is_placed = reader->is_gone = false;
}

static void look_at_id(struct reader *reader, int timeout_ms) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(reader->answers, timeout_ms);
    if (event == NULL) return;
    (void)!topic_ids_take(&reader->ids, reader->client, event);
    rd_kafka_event_destroy(event);
    const char *told = topic_ids_get(&reader->ids, reader->topic);
    if (reader->id[0] == 0) snprintf(reader->id, sizeof reader->id, "%s", told);
    else if (topic_ids_differ(reader->id, told)) begin_anew(reader);
}

static void ask_for_id(struct reader *reader) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, reader->topic, 0);
    reader->asks_ids = topic_ids_ask(reader->client, one, LOOK_MS, reader->answers);
    rd_kafka_topic_partition_list_destroy(one);
}

/* Finds where to start reading each partition. The id is asked for first: it is told meanwhile, and
 * if the topic is created anew in between, the next look sees another one. */
static rd_kafka_resp_err_t find_offsets(
    struct reader *reader, uint64_t until_ns, rd_kafka_topic_partition_list_t *list) {
    int32_t count;
    rd_kafka_resp_err_t native = count_partitions(reader, until_ns, &count);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return native;
    ask_for_id(reader);
    return add_partitions(reader, count, until_ns, list);
}

static rd_kafka_resp_err_t place(struct reader *reader, int timeout_ms) {
    uint64_t until_ns = clock_ns_in((uint64_t)timeout_ms);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t native = find_offsets(reader, until_ns, list);
    while (is_passing(native) && clock_ns() < until_ns) {
        rd_kafka_poll(reader->client, ASK_AGAIN_MS);
        rd_kafka_topic_partition_list_destroy(list);
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t next = find_offsets(reader, until_ns, list);
        /* the previous answer says more than a time-out */
        if (next != RD_KAFKA_RESP_ERR__TIMED_OUT) native = next;
    }
    if (native == RD_KAFKA_RESP_ERR_NO_ERROR) native = rd_kafka_assign(reader->client, list);
    rd_kafka_topic_partition_list_destroy(list);
    reader->is_placed = native == RD_KAFKA_RESP_ERR_NO_ERROR;
    return native;
}

enum err reader_create(const struct kafka_options *options, const char *topic,
    uint64_t from_unix_ms, int timeout_ms, struct reader **ret, struct error *err) {
    rd_kafka_conf_t *conf = NULL;
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return error_no_memory(err, "no memory for a reader");
    reader->events = (struct client_events){
        .on_event = options->on_event, .context = options->context, .name = "kafka reader"};
    reader->from_unix_ms = from_unix_ms;
    reader->topic = strdup(topic);
    enum err code = ERR_OK;
    if (reader->topic == NULL) code = error_no_memory(err, "no memory for a reader");
    if (code == ERR_OK)
        code = client_conf_create(options, "kafka.consumer", defaults, required, &conf, err);
    if (code == ERR_OK)
        code = client_create(RD_KAFKA_CONSUMER, conf, "kafka.consumer", &reader->client, err);
    if (code == ERR_OK) rd_kafka_poll_set_consumer(reader->client);
    if (code == ERR_OK) reader->answers = rd_kafka_queue_new(reader->client);
    if (code == ERR_OK && timeout_ms > 0) {
        rd_kafka_resp_err_t native = place(reader, timeout_ms);
        if (native != RD_KAFKA_RESP_ERR_NO_ERROR) code = describe(reader, native, err);
        else if (reader->asks_ids) look_at_id(reader, LOOK_WAIT_MS);
    }
    if (code == ERR_OK) *ret = reader;
    else reader_destroy(reader);
    return code;
}

void reader_destroy(struct reader *reader) {
    if (reader == NULL) return;
    if (reader->answers != NULL) rd_kafka_queue_destroy(reader->answers);
    topic_ids_fini(&reader->ids);
    if (reader->client != NULL) {
        rd_kafka_consumer_close(reader->client);
        client_destroy(reader->client);
    }
    free(reader->ends);
    free(reader->topic);
    free(reader);
}

/* Notes that all of the partition below `offset` has been returned. */
static void note_offset(struct reader *reader, int32_t partition, int64_t offset) {
    if (partition < 0 || partition >= reader->partition_count) return;
    struct reader_end *end = &reader->ends[partition];
    end->next = offset;
    if (offset >= end->offset) end->is_reached = true;
}

/* Consumes `message`. */
static enum err keep(
    struct reader *reader, rd_kafka_message_t *message, struct delivery **ret, struct error *err) {
    int32_t partition = message->partition;
    int64_t offset = message->offset;
    /* a dead letter has the worker's headers besides the sender's */
    struct delivery *delivery = client_lend_message(message, 2 * DELIVERY_HEADERS_MAX);
    if (delivery == NULL || !delivery_keep(delivery)) {
        delivery_destroy(delivery);
        return error_no_memory(err, "no memory for a message");
    }
    note_offset(reader, partition, offset + 1);
    delivery->position.topic = reader->topic;
    delivery->position.partition = partition;
    delivery->position.offset = offset;
    *ret = delivery;
    return ERR_OK;
}

/* As long as no broker answers, that is an event, and nothing comes. */
static enum err place_later(struct reader *reader, struct error *err) {
    rd_kafka_resp_err_t native = place(reader, ASK_MS);
    if (is_passing(native)) return describe(reader, native, err);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR)
        client_report(&reader->events, native, "where to start reading is not known yet");
    return ERR_OK;
}

/* What stands in a partition that was added came after the reader. */
static void add_later(struct reader *reader, int32_t count) {
    struct reader_end *ends = realloc(reader->ends, (size_t)count * sizeof ends[0]);
    if (ends == NULL) return; /* the next look tries again */
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int32_t i = reader->partition_count; i < count; i++)
        ends[i] = (struct reader_end){.is_reached = true, .next = RD_KAFKA_OFFSET_BEGINNING};
    for (int32_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, reader->topic, i)->offset = ends[i].next;
    reader->ends = ends;
    reader->partition_count = count;
    rd_kafka_resp_err_t native = rd_kafka_assign(reader->client, list);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR)
        client_report(&reader->events, native, "reading partitions that were added");
    rd_kafka_topic_partition_list_destroy(list);
}

/* Whether the topic is another one, or has more partitions. Its id tells at once, where ids are
 * told (topic_ids.h); else a topic that was seen to be away, or to have fewer partitions. */
static void look(struct reader *reader) {
    look_at_id(reader, 0);
    if (!reader->is_placed || clock_ns() < reader->next_look_ns) return;
    reader->next_look_ns = clock_ns_in(LOOK_MS);
    ask_for_id(reader);
    int32_t count;
    rd_kafka_resp_err_t native = count_partitions(reader, clock_ns_in(LOOK_WAIT_MS), &count);
    if (native == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) reader->is_gone = true;
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    if (reader->is_gone || count < reader->partition_count) begin_anew(reader);
    else if (count > reader->partition_count) add_later(reader, count);
}

enum err reader_poll(
    struct reader *reader, int timeout_ms, struct delivery **ret, struct error *err) {
    *ret = NULL;
    look(reader);
    if (!reader->is_placed) return place_later(reader, err);
    rd_kafka_message_t *message = rd_kafka_consumer_poll(reader->client, timeout_ms);
    if (message == NULL) return ERR_OK;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return keep(reader, message, ret, err);
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        note_offset(reader, message->partition, message->offset);
    else client_report(&reader->events, message->err, rd_kafka_message_errstr(message));
    rd_kafka_message_destroy(message);
    return ERR_OK;
}

bool reader_has_caught_up(const struct reader *reader) {
    for (int32_t i = 0; i < reader->partition_count; i++)
        if (!reader->ends[i].is_reached) return false;
    return reader->is_placed;
}

bool reader_is_late(const struct reader *reader, const struct position *position) {
    return position->partition < 0 || position->partition >= reader->partition_count ||
           position->offset >= reader->ends[position->partition].offset;
}

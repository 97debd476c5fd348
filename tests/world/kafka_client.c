/* Clients, their queues and errors (kafka.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/kafka.h"
#include "world/leaks.h"
#include "world/scheduler.h"

enum { WAY_NS_MAX = 1500000 };

void kafka_pass_time(void) {
    scheduler_sleep_ns(1 + scheduler_draw(WAY_NS_MAX));
}

uint64_t kafka_answer_ns(void) {
    return scheduler_now_ns() + scheduler_draw(WAY_NS_MAX);
}

uint64_t kafka_until_ns(int timeout_ms) {
    return timeout_ms < 0 ? UINT64_MAX : scheduler_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

uint64_t kafka_down_until_ns(const rd_kafka_t *client) {
    return client->is_stray ? UINT64_MAX : cluster_down_until_ns();
}

bool kafka_is_down(const rd_kafka_t *client) {
    return kafka_down_until_ns(client) > scheduler_now_ns();
}

bool kafka_reach(rd_kafka_t *client, uint64_t until_ns) {
    kafka_pass_time();
    while (kafka_is_down(client)) {
        uint64_t up_ns = kafka_down_until_ns(client);
        if (scheduler_now_ns() >= until_ns) return false;
        (void)scheduler_wait(cluster_key(), up_ns < until_ns ? up_ns : until_ns);
    }
    client->has_met_broker = true;
    group_serve();
    producer_ids_serve();
    return true;
}

rd_kafka_resp_err_t kafka_refusal(enum request request) {
    rd_kafka_resp_err_t code;
    while ((code = cluster_refusal(request)) == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
        kafka_pass_time();
    return code;
}

void kafka_tell_outage(rd_kafka_t *client) {
    uint64_t count = client->is_stray ? 1 : cluster_outage_count();
    bool is_told = client->outages_told == count;
    client->outages_told = count;
    if (is_told) return;
    rd_kafka_resp_err_t code =
        cluster_is_shut() ? RD_KAFKA_RESP_ERR__AUTHENTICATION : RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
    if (client->on_error != NULL) {
        client->on_error(client, code, "1/1 brokers are down", client->opaque);
    } else if ((kafka_number(client, "enabled_events") & RD_KAFKA_EVENT_ERROR) != 0) {
        rd_kafka_event_t *event = calloc(1, sizeof *event);
        if (event == NULL) abort();
        *event = (rd_kafka_event_t){.kind = EVENT_ERROR, .code = code};
        kafka_queue_add(client->main_queue, event);
    }
}

/* ---- clients ---- */

void kafka_text(const rd_kafka_t *client, const char *key, char *ret, size_t size) {
    if (rd_kafka_conf_get(client->conf, key, ret, &size) != RD_KAFKA_CONF_OK) ret[0] = 0;
}

uint64_t kafka_number(const rd_kafka_t *client, const char *key) {
    char text[64];
    kafka_text(client, key, text, sizeof text);
    return strtoull(text, NULL, 10);
}

/* The library tells what callbacks a configuration has as texts of addresses. */
static void *address_in(const char *text) {
    void *address = NULL;
    (void)!sscanf(text, "%p", &address);
    return address;
}

static void *read_address(const rd_kafka_t *client, const char *key) {
    char text[64];
    kafka_text(client, key, text, sizeof text);
    return address_in(text);
}

static void *read_topic_address(const rd_kafka_t *client, const char *key) {
    char text[64] = "";
    size_t size = sizeof text;
    const rd_kafka_topic_conf_t *conf = rd_kafka_conf_get_default_topic_conf(client->conf);
    if (conf == NULL || rd_kafka_topic_conf_get(conf, key, text, &size) != RD_KAFKA_CONF_OK)
        return NULL;
    return address_in(text);
}

static void read_settings(rd_kafka_t *client) {
    char text[KAFKA_ID_SIZE];
    kafka_text(client, "bootstrap.servers", text, sizeof text);
    client->is_stray = strcmp(text, CLUSTER_ADDRESS) != 0;
    kafka_text(client, "log.queue", text, sizeof text);
    client->has_log_queue = strcmp(text, "true") == 0;
    kafka_text(client, "group.id", client->group, sizeof client->group);
    client->sent_max = kafka_number(client, "queue.buffering.max.messages");
    client->record_bytes_max = kafka_number(client, "message.max.bytes");
}

rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t why_size) {
    rd_kafka_t *client = calloc(1, sizeof *client);
    if (client == NULL) abort();
    client->type = type;
    client->conf = conf;
    client->generation = -1;
    client->opaque = read_address(client, "opaque");
    *(void **)&client->on_rebalance = read_address(client, "rebalance_cb");
    *(void **)&client->on_error = read_address(client, "error_cb");
    *(void **)&client->on_log = read_address(client, "log_cb");
    *(void **)&client->choose_partition = read_topic_address(client, "partitioner_cb");
    client->topic_opaque = read_topic_address(client, "opaque");
    client->main_queue = rd_kafka_queue_new(client);
    read_settings(client);
    if (type == RD_KAFKA_CONSUMER) kafka_member_begin(client);
    client->outages_told = client->is_stray ? 0 : cluster_outage_count() - kafka_is_down(client);
    return leaks_note(client, __builtin_return_address(0));
}

/* What a client has given must come back before it goes: librdkafka would wait for it for ever. */
static void check_all_is_back(const rd_kafka_t *client) {
    if (client->queue_count + client->lent_count == 0) return;
    fprintf(stderr, "a client ends while its caller has %zu queues and %zu messages of it\n",
        client->queue_count, client->lent_count);
    abort();
}

void rd_kafka_destroy_flags(rd_kafka_t *client, int flags) {
    if (client->type == RD_KAFKA_CONSUMER)
        kafka_consumer_fini(client, (flags & RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) == 0);
    else kafka_producer_fini(client);
    while (client->topics != NULL) {
        struct rd_kafka_topic_s *topic = client->topics;
        client->topics = topic->next;
        free(topic);
    }
    rd_kafka_queue_destroy(client->main_queue);
    check_all_is_back(client);
    rd_kafka_conf_destroy(client->conf);
    free(client);
}

void rd_kafka_destroy(rd_kafka_t *client) {
    rd_kafka_destroy_flags(client, 0);
}

const rd_kafka_conf_t *rd_kafka_conf(rd_kafka_t *client) {
    return client->conf;
}

void *rd_kafka_opaque(const rd_kafka_t *client) {
    return client->opaque;
}

char *rd_kafka_clusterid(rd_kafka_t *client, int timeout_ms) {
    return client->has_met_broker ? strdup("world") : NULL;
}

void rd_kafka_mem_free(rd_kafka_t *client, void *memory) {
    free(memory);
}

rd_kafka_resp_err_t rd_kafka_fatal_error(rd_kafka_t *client, char *text, size_t size) {
    if (text != NULL && size > 0) snprintf(text, size, "%s", rd_kafka_err2str(client->fatal));
    return client->fatal;
}

rd_kafka_resp_err_t rd_kafka_set_log_queue(rd_kafka_t *client, rd_kafka_queue_t *queue) {
    client->has_log_queue = false;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

int rd_kafka_poll(rd_kafka_t *client, int timeout_ms) {
    if (timeout_ms > 0) scheduler_sleep_ns((uint64_t)timeout_ms * 1000000u);
    return 0;
}

/* ---- topics ---- */

rd_kafka_topic_t *kafka_topic(rd_kafka_t *client, const char *name) {
    for (struct rd_kafka_topic_s *topic = client->topics; topic != NULL; topic = topic->next)
        if (strcmp(topic->name, name) == 0) return topic;
    struct rd_kafka_topic_s *topic = calloc(1, sizeof *topic);
    if (topic == NULL) abort();
    snprintf(topic->name, sizeof topic->name, "%s", name);
    topic->next = client->topics;
    client->topics = topic;
    return topic;
}

const char *rd_kafka_topic_name(const rd_kafka_topic_t *topic) {
    return topic->name;
}

int rd_kafka_topic_partition_available(const rd_kafka_topic_t *topic, int32_t partition) {
    return cluster_find_log(topic->name, partition) != NULL &&
           cluster_down_until_ns() <= scheduler_now_ns();
}

rd_kafka_topic_t *rd_kafka_topic_new(
    rd_kafka_t *client, const char *name, rd_kafka_topic_conf_t *conf) {
    return kafka_topic(client, name);
}

void rd_kafka_topic_destroy(rd_kafka_topic_t *topic) {} /* its client does */

/* What the worker looks at: whether that topic is there, and how many partitions it has. */
struct answer {
    struct rd_kafka_metadata seen;
    struct rd_kafka_metadata_topic topic;
    char name[CLUSTER_NAME_SIZE];
};

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *client, int all, rd_kafka_topic_t *only,
    const struct rd_kafka_metadata **ret, int timeout_ms) {
    if (!kafka_reach(client, kafka_until_ns(timeout_ms))) {
        kafka_tell_outage(client);
        return RD_KAFKA_RESP_ERR__TIMED_OUT;
    }
    struct answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL) abort();
    *ret = leaks_note(&answer->seen, __builtin_return_address(0));
    if (only == NULL) return RD_KAFKA_RESP_ERR_NO_ERROR;
    const struct topic *topic = cluster_find_topic(only->name);
    snprintf(answer->name, sizeof answer->name, "%s", only->name);
    answer->seen.topic_cnt = 1;
    answer->seen.topics = &answer->topic;
    answer->topic.topic = answer->name;
    answer->topic.partition_cnt = topic != NULL ? topic->partition_count : 0;
    answer->topic.err =
        topic != NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    kafka_pass_time();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void rd_kafka_metadata_destroy(const struct rd_kafka_metadata *metadata) {
    free((void *)(uintptr_t)metadata); /* the first member of its answer */
}

/* ---- errors ---- */

struct rd_kafka_error_s {
    rd_kafka_resp_err_t code;
    bool is_retriable, must_abort;
};

rd_kafka_error_t *kafka_error(rd_kafka_resp_err_t code, bool is_retriable, bool must_abort) {
    rd_kafka_error_t *error = calloc(1, sizeof *error);
    if (error == NULL) abort();
    *error = (rd_kafka_error_t){code, is_retriable, must_abort};
    return leaks_note(error, __builtin_return_address(0));
}

rd_kafka_resp_err_t rd_kafka_error_code(const rd_kafka_error_t *error) {
    return error != NULL ? error->code : RD_KAFKA_RESP_ERR_NO_ERROR;
}

const char *rd_kafka_error_name(const rd_kafka_error_t *error) {
    return rd_kafka_err2name(rd_kafka_error_code(error));
}

const char *rd_kafka_error_string(const rd_kafka_error_t *error) {
    return rd_kafka_err2str(rd_kafka_error_code(error));
}

int rd_kafka_error_is_retriable(const rd_kafka_error_t *error) {
    return error->is_retriable;
}

int rd_kafka_error_txn_requires_abort(const rd_kafka_error_t *error) {
    return error->must_abort;
}

void rd_kafka_error_destroy(rd_kafka_error_t *error) {
    free(error);
}

/* ---- queues and events ---- */

rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *client) {
    rd_kafka_queue_t *queue = calloc(1, sizeof *queue);
    if (queue == NULL) abort();
    queue->client = client;
    queue->references = 1;
    client->queue_count++;
    return queue;
}

rd_kafka_queue_t *rd_kafka_queue_get_main(rd_kafka_t *client) {
    client->main_queue->references++;
    return client->main_queue;
}

/* What is polled with it is another queue's; this one is there to be yielded. */
rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *client) {
    return rd_kafka_queue_new(client);
}

void rd_kafka_queue_yield(rd_kafka_queue_t *queue) {
    queue->client->is_yielded = true;
    cluster_changed();
}

void rd_kafka_queue_destroy(rd_kafka_queue_t *queue) {
    if (--queue->references > 0) return;
    while (queue->first != NULL) {
        rd_kafka_event_t *event = queue->first;
        queue->first = event->next;
        rd_kafka_event_destroy(event);
    }
    if (queue->client->closing_queue == queue) queue->client->closing_queue = NULL;
    queue->client->queue_count--;
    free(queue);
}

void kafka_queue_add(rd_kafka_queue_t *queue, rd_kafka_event_t *event) {
    rd_kafka_event_t **end = &queue->first;
    while (*end != NULL) end = &(*end)->next;
    *end = event;
}

static void describe(struct descriptions *asked);

/* When its first event can be taken: what brokers answer, not while they are away. */
static uint64_t due_of(const rd_kafka_queue_t *queue) {
    const rd_kafka_event_t *event = queue->first;
    if (event == NULL) return UINT64_MAX;
    bool is_answer = event->kind == EVENT_COMMIT || event->kind == EVENT_DESCRIPTIONS;
    uint64_t up_ns = is_answer ? kafka_down_until_ns(queue->client) : 0;
    return event->due_ns > up_ns ? event->due_ns : up_ns;
}

static rd_kafka_event_t *take(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = queue->first;
    if (due_of(queue) > scheduler_now_ns()) return NULL;
    if (event->kind == EVENT_DESCRIPTIONS) {
        queue->client->has_met_broker = true;
        describe(event->descriptions);
    }
    queue->first = event->next;
    event->next = NULL;
    return event;
}

/* Serves its client, and returns when to look again. */
static uint64_t serve(rd_kafka_queue_t *queue) {
    uint64_t next_ns = UINT64_MAX;
    if (queue->client->type == RD_KAFKA_PRODUCER) next_ns = kafka_producer_serve(queue->client);
    else if (queue->client->closing_queue == queue) kafka_consumer_serve(queue->client);
    return due_of(queue) < next_ns ? due_of(queue) : next_ns;
}

rd_kafka_event_t *rd_kafka_queue_poll(rd_kafka_queue_t *queue, int timeout_ms) {
    uint64_t until_ns = kafka_until_ns(timeout_ms);
    for (;;) {
        uint64_t next_ns = serve(queue);
        rd_kafka_event_t *event = take(queue);
        if (event != NULL || scheduler_now_ns() >= until_ns)
            return leaks_note(event, __builtin_return_address(0));
        (void)scheduler_wait(cluster_key(), next_ns < until_ns ? next_ns : until_ns);
    }
}

int rd_kafka_queue_poll_callback(rd_kafka_queue_t *queue, int timeout_ms) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    if (event == NULL) return 0;
    if (event->kind == EVENT_COMMIT) {
        rd_kafka_resp_err_t code =
            kafka_commit(queue->client, (int32_t)event->code, event->partitions);
        event->on_commit(queue->client, code, event->partitions, event->context);
    }
    rd_kafka_event_destroy(event);
    return 1;
}

void rd_kafka_event_destroy(rd_kafka_event_t *event) {
    if (event == NULL) return;
    if (event->partitions != NULL) rd_kafka_topic_partition_list_destroy(event->partitions);
    for (size_t i = 0; event->descriptions != NULL && i < event->descriptions->count; i++)
        rd_kafka_error_destroy(event->descriptions->items[i].error);
    free(event->descriptions);
    while (event->reports != NULL) {
        struct message *report = event->reports;
        event->reports = report->next;
        free(report);
    }
    free(event);
}

rd_kafka_event_type_t rd_kafka_event_type(const rd_kafka_event_t *event) {
    if (event == NULL) return RD_KAFKA_EVENT_NONE;
    switch (event->kind) {
    case EVENT_REBALANCE: return RD_KAFKA_EVENT_REBALANCE;
    case EVENT_REPORTS: return RD_KAFKA_EVENT_DR;
    case EVENT_ERROR: return RD_KAFKA_EVENT_ERROR;
    default: return RD_KAFKA_EVENT_OFFSET_COMMIT;
    }
}

rd_kafka_resp_err_t rd_kafka_event_error(rd_kafka_event_t *event) {
    return event->code;
}

const char *rd_kafka_event_error_string(rd_kafka_event_t *event) {
    return rd_kafka_err2str(event->code);
}

int rd_kafka_event_log(
    rd_kafka_event_t *event, const char **facility, const char **line, int *level) {
    return -1;
}

rd_kafka_topic_partition_list_t *rd_kafka_event_topic_partition_list(rd_kafka_event_t *event) {
    return event->partitions;
}

const rd_kafka_message_t *rd_kafka_event_message_next(rd_kafka_event_t *event) {
    struct message *report = event->next_report;
    if (report == NULL) return NULL;
    event->next_report = report->next;
    return &report->seen;
}

/* ---- messages ---- */

void rd_kafka_message_destroy(rd_kafka_message_t *seen) {
    struct message *message = (struct message *)seen;
    if (message->lender != NULL) message->lender->lent_count--;
    if (message->headers != NULL) rd_kafka_headers_destroy(message->headers);
    free(message->reason);
    free(message);
}

const char *rd_kafka_message_errstr(const rd_kafka_message_t *seen) {
    const struct message *message = (const struct message *)seen;
    return message->reason != NULL ? message->reason : rd_kafka_err2str(seen->err);
}

int64_t rd_kafka_message_timestamp(
    const rd_kafka_message_t *seen, rd_kafka_timestamp_type_t *type) {
    const struct message *message = (const struct message *)seen;
    *type =
        message->record != NULL ? RD_KAFKA_TIMESTAMP_CREATE_TIME : RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    return message->record != NULL ? message->record->time_ms : -1;
}

rd_kafka_resp_err_t rd_kafka_message_headers(
    const rd_kafka_message_t *seen, rd_kafka_headers_t **ret) {
    struct message *message = (struct message *)(uintptr_t)seen;
    if (message->record == NULL || message->record->header_count == 0)
        return RD_KAFKA_RESP_ERR__NOENT;
    if (message->headers == NULL) {
        message->headers = rd_kafka_headers_new(message->record->header_count);
        for (size_t i = 0; i < message->record->header_count; i++) {
            const struct log_header *header = &message->record->headers[i];
            rd_kafka_header_add(
                message->headers, header->name, -1, header->value, (ssize_t)header->size);
        }
    }
    *ret = message->headers;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* ---- ids of topics: newer than the header, so the worker looks these functions up ---- */

void *rd_kafka_TopicCollection_of_topic_names(const char **names, size_t count);
void rd_kafka_TopicCollection_destroy(void *topics);
void rd_kafka_DescribeTopics(
    rd_kafka_t *client, const void *topics, const void *options, rd_kafka_queue_t *queue);
const void *rd_kafka_event_DescribeTopics_result(rd_kafka_event_t *event);
const void **rd_kafka_DescribeTopics_result_topics(const void *result, size_t *count);
const char *rd_kafka_TopicDescription_name(const void *topic);
const void *rd_kafka_TopicDescription_error(const void *topic);
const void *rd_kafka_TopicDescription_topic_id(const void *topic);
const char *rd_kafka_Uuid_base64str(const void *id);

rd_kafka_AdminOptions_t *rd_kafka_AdminOptions_new(rd_kafka_t *client, rd_kafka_admin_op_t kind) {
    return NULL;
}

rd_kafka_resp_err_t rd_kafka_AdminOptions_set_request_timeout(
    rd_kafka_AdminOptions_t *options, int timeout_ms, char *why, size_t why_size) {
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void rd_kafka_AdminOptions_destroy(rd_kafka_AdminOptions_t *options) {}

void *rd_kafka_TopicCollection_of_topic_names(const char **names, size_t count) {
    struct descriptions *asked = calloc(1, sizeof *asked);
    if (asked == NULL || count > CLUSTER_TOPICS) abort();
    for (; asked->count < count; asked->count++)
        snprintf(asked->items[asked->count].name, CLUSTER_NAME_SIZE, "%s", names[asked->count]);
    return asked;
}

void rd_kafka_TopicCollection_destroy(void *topics) {
    free(topics);
}

/* Brokers do it at some time between question and answer. */
static void describe(struct descriptions *asked) {
    if (asked->are_told) return;
    asked->are_told = true;
    for (size_t i = 0; i < asked->count; i++) {
        const struct topic *topic = cluster_find_topic(asked->items[i].name);
        asked->list[i] = &asked->items[i];
        if (topic == NULL)
            asked->items[i].error =
                kafka_error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, false, false);
        else cluster_tell_id(topic, asked->items[i].id, sizeof asked->items[i].id);
    }
}

void rd_kafka_DescribeTopics(
    rd_kafka_t *client, const void *topics, const void *options, rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = calloc(1, sizeof *event);
    struct descriptions *asked = malloc(sizeof *asked);
    if (event == NULL || asked == NULL) abort();
    memcpy(asked, topics, sizeof *asked);
    if (scheduler_draw(2) == 0) describe(asked);
    *event = (rd_kafka_event_t){
        .kind = EVENT_DESCRIPTIONS, .due_ns = kafka_answer_ns(), .descriptions = asked};
    kafka_queue_add(queue, event);
}

const void *rd_kafka_event_DescribeTopics_result(rd_kafka_event_t *event) {
    return event->descriptions;
}

const void **rd_kafka_DescribeTopics_result_topics(const void *result, size_t *count) {
    struct descriptions *asked = (struct descriptions *)(uintptr_t)result;
    *count = asked->count;
    return asked->list;
}

const char *rd_kafka_TopicDescription_name(const void *topic) {
    return ((const struct description *)topic)->name;
}

const void *rd_kafka_TopicDescription_error(const void *topic) {
    return ((const struct description *)topic)->error;
}

const void *rd_kafka_TopicDescription_topic_id(const void *topic) {
    return ((const struct description *)topic)->id;
}

const char *rd_kafka_Uuid_base64str(const void *id) {
    return id;
}

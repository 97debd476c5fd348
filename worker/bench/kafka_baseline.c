#include "bench/kafka_baseline.h"

#include <stdlib.h>

#include "base/clock.h"
#include "bench/cpu_time.h"
#include "broker/client.h"

enum {
    ADMIN_TIMEOUT_MS = 15000,
    SILENCE_MS = 60000, /* without any progress */
    POLL_MS = 100,
    MESSAGES_AT_ONCE = 1000
};

static enum err no_answer(rd_kafka_resp_err_t native, const char *what, struct error *err) {
    return error_set(err, ERR_BROKER, native, "check kafka.bootstrap_servers and its rights",
        "%s: %s", what, rd_kafka_err2str(native));
}

/* Of a call that returns NULL if it succeeds. */
static enum err succeed(rd_kafka_error_t *failure, const char *what, struct error *err) {
    if (failure == NULL) return ERR_OK;
    enum err code = no_answer(rd_kafka_error_code(failure), what, err);
    rd_kafka_error_destroy(failure);
    return code;
}

/* --- topics --- */

static enum err create_admin(
    const struct kafka_options *kafka, rd_kafka_t **ret, struct error *err) {
    static const struct client_setting none[] = {{NULL, NULL}};
    rd_kafka_conf_t *conf;
    enum err code = client_conf_create(kafka, "kafka.producer", none, none, &conf, err);
    if (code == ERR_OK) code = client_create(RD_KAFKA_PRODUCER, conf, "kafka.producer", ret, err);
    return code;
}

/* The first failure among the answers for single topics. */
static rd_kafka_resp_err_t first_failure(rd_kafka_event_t *event) {
    size_t count = 0;
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return rd_kafka_event_error(event);
    const rd_kafka_topic_result_t **answers =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++)
        if (rd_kafka_topic_result_error(answers[i]) != RD_KAFKA_RESP_ERR_NO_ERROR)
            return rd_kafka_topic_result_error(answers[i]);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t create_topics(
    rd_kafka_t *admin, const char *const *names, size_t count, int partitions) {
    rd_kafka_NewTopic_t **topics = calloc(count, sizeof topics[0]);
    if (topics == NULL) return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    for (size_t i = 0; i < count; i++)
        topics[i] = rd_kafka_NewTopic_new(names[i], partitions, 1, NULL, 0);
    rd_kafka_CreateTopics(admin, topics, count, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_TIMEOUT_MS);
    rd_kafka_resp_err_t code = event != NULL ? first_failure(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (event != NULL) rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy_array(topics, count);
    free(topics);
    return code;
}

enum err kafka_baseline_make_topics(const struct kafka_options *kafka, const char *const *names,
    size_t count, int partitions, struct error *err) {
    rd_kafka_t *admin;
    enum err code = create_admin(kafka, &admin, err);
    if (code != ERR_OK) return code;
    rd_kafka_resp_err_t native = create_topics(admin, names, count, partitions);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) code = no_answer(native, "making topics", err);
    rd_kafka_destroy(admin);
    return code;
}

void kafka_baseline_remove_topics(
    const struct kafka_options *kafka, const char *const *names, size_t count) {
    rd_kafka_t *admin;
    struct error err;
    rd_kafka_DeleteTopic_t **topics = calloc(count, sizeof topics[0]);
    if (topics == NULL) return;
    if (create_admin(kafka, &admin, &err) == ERR_OK) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
        for (size_t i = 0; i < count; i++) topics[i] = rd_kafka_DeleteTopic_new(names[i]);
        rd_kafka_DeleteTopics(admin, topics, count, NULL, queue);
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_TIMEOUT_MS);
        if (event != NULL) rd_kafka_event_destroy(event);
        rd_kafka_DeleteTopic_destroy_array(topics, count);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(admin);
    }
    free(topics);
}

/* --- producing --- */

struct responses {
    rd_kafka_t *client;
    uint64_t acknowledged;
    rd_kafka_resp_err_t failure; /* the first one */
};

static void on_delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    struct responses *responses = opaque;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) responses->acknowledged++;
    else if (responses->failure == RD_KAFKA_RESP_ERR_NO_ERROR) responses->failure = message->err;
}

/* Without a transactional id it produces without transactions. */
static enum err create_producer(const struct kafka_options *kafka, const char *transactional_id,
    struct responses *responses, struct error *err) {
    static const struct client_setting defaults[] = {{"linger.ms", "1"}, {NULL, NULL}};
    const struct client_setting required[] = {{"enable.idempotence", "true"},
        {transactional_id != NULL ? "transactional.id" : NULL, transactional_id}, {NULL, NULL}};
    rd_kafka_conf_t *conf;
    *responses = (struct responses){.client = NULL};
    enum err code = client_conf_create(kafka, "kafka.producer", defaults, required, &conf, err);
    if (code != ERR_OK) return code;
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    rd_kafka_conf_set_opaque(conf, responses);
    rd_kafka_conf_set_log_cb(conf, NULL); /* errors are returned by the calls */
    code = client_create(RD_KAFKA_PRODUCER, conf, "kafka.producer", &responses->client, err);
    if (code != ERR_OK || transactional_id == NULL) return code;
    return succeed(rd_kafka_init_transactions(responses->client, SILENCE_MS), "init", err);
}

static void destroy_producer(struct responses *responses) {
    if (responses->client == NULL) return;
    rd_kafka_purge(responses->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_destroy(responses->client);
}

static void produce(struct responses *responses, const char *topic, struct slice payload) {
    rd_kafka_resp_err_t code;
    do {
        code = rd_kafka_producev(responses->client, RD_KAFKA_V_TOPIC(topic),
            RD_KAFKA_V_VALUE((void *)(uintptr_t)payload.data, payload.size), RD_KAFKA_V_END);
        rd_kafka_poll(responses->client, code == RD_KAFKA_RESP_ERR__QUEUE_FULL ? POLL_MS : 0);
    } while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) responses->failure = code;
}

/* Serves acknowledgements until there are `count`. */
static enum err await(struct responses *responses, uint64_t count, struct error *err) {
    uint64_t moved_ns = clock_ns(), seen = responses->acknowledged;
    while (responses->acknowledged < count) {
        if (responses->failure != RD_KAFKA_RESP_ERR_NO_ERROR)
            return no_answer(responses->failure, "producing", err);
        rd_kafka_poll(responses->client, POLL_MS);
        if (responses->acknowledged > seen) moved_ns = clock_ns();
        seen = responses->acknowledged;
        if (clock_ns() - moved_ns > SILENCE_MS * 1000000ull)
            return no_answer(RD_KAFKA_RESP_ERR__TIMED_OUT, "producing", err);
    }
    return ERR_OK;
}

enum err kafka_baseline_fill(const struct kafka_options *kafka, const char *topic,
    struct slice payload, uint64_t count, struct error *err) {
    struct responses responses;
    enum err code = create_producer(kafka, NULL, &responses, err);
    for (uint64_t i = 0; i < count && code == ERR_OK; i++) produce(&responses, topic, payload);
    if (code == ERR_OK) code = await(&responses, count, err);
    destroy_producer(&responses);
    return code;
}

/* --- the loop --- */

static enum err create_consumer(
    const struct kafka_baseline_work *work, rd_kafka_t **ret, struct error *err) {
    const struct client_setting defaults[] = {{"auto.offset.reset", "earliest"}, {NULL, NULL}};
    const struct client_setting required[] = {{"group.id", work->group},
        {"enable.auto.commit", work->transactional_id == NULL ? "true" : "false"},
        {"auto.commit.interval.ms", "500"}, {NULL, NULL}};
    rd_kafka_conf_t *conf;
    enum err code =
        client_conf_create(&work->consumer, "kafka.consumer", defaults, required, &conf, err);
    if (code != ERR_OK) return code;
    rd_kafka_conf_set_log_cb(conf, NULL);
    code = client_create(RD_KAFKA_CONSUMER, conf, "kafka.consumer", ret, err);
    if (code != ERR_OK) return code;
    rd_kafka_poll_set_consumer(*ret);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, work->from, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t native = rd_kafka_subscribe(*ret, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return native == RD_KAFKA_RESP_ERR_NO_ERROR ? ERR_OK : no_answer(native, "subscribing", err);
}

struct loop {
    const struct kafka_baseline_work *work;
    rd_kafka_t *consumer;
    rd_kafka_queue_t *queue;
    struct responses responses;
    uint64_t answered;
};

/* Answers available messages, `max` at most; returns how many. */
static uint64_t answer_some(struct loop *loop, uint64_t max) {
    rd_kafka_message_t *messages[MESSAGES_AT_ONCE];
    ssize_t count = rd_kafka_consume_batch_queue(
        loop->queue, POLL_MS, messages, max < MESSAGES_AT_ONCE ? max : MESSAGES_AT_ONCE);
    uint64_t answered = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            produce(&loop->responses, loop->work->to, loop->work->response);
            answered++;
        }
        rd_kafka_message_destroy(messages[i]);
    }
    return answered;
}

/* Until `until` are answered. */
static enum err answer(struct loop *loop, uint64_t until, struct error *err) {
    uint64_t moved_ns = clock_ns();
    while (loop->answered < until) {
        uint64_t count = answer_some(loop, until - loop->answered);
        if (count > 0) moved_ns = clock_ns();
        else if (clock_ns() - moved_ns > SILENCE_MS * 1000000ull)
            return no_answer(RD_KAFKA_RESP_ERR__TIMED_OUT, "consuming", err);
        loop->answered += count;
    }
    return ERR_OK;
}

/* Commits the offsets of all messages that were read. */
static enum err send_offsets(struct loop *loop, struct error *err) {
    rd_kafka_topic_partition_list_t *offsets;
    rd_kafka_resp_err_t native = rd_kafka_assignment(loop->consumer, &offsets);
    if (native != RD_KAFKA_RESP_ERR_NO_ERROR) return no_answer(native, "assignment", err);
    native = rd_kafka_position(loop->consumer, offsets);
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(loop->consumer);
    enum err code = native == RD_KAFKA_RESP_ERR_NO_ERROR
                        ? succeed(rd_kafka_send_offsets_to_transaction(
                                      loop->responses.client, offsets, group, SILENCE_MS),
                              "sending offsets", err)
                        : no_answer(native, "position", err);
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(offsets);
    return code;
}

static enum err answer_in_transactions(struct loop *loop, uint64_t until, struct error *err) {
    rd_kafka_t *producer = loop->responses.client;
    enum err code = ERR_OK;
    while (loop->answered < until && code == ERR_OK) {
        uint64_t next = loop->answered + loop->work->transaction_messages;
        code = succeed(rd_kafka_begin_transaction(producer), "beginning a transaction", err);
        if (code == ERR_OK) code = answer(loop, next < until ? next : until, err);
        if (code == ERR_OK) code = send_offsets(loop, err);
        if (code == ERR_OK)
            code = succeed(rd_kafka_commit_transaction(producer, SILENCE_MS), "committing", err);
    }
    return code;
}

/* Until `until` are answered, and all answers are acknowledged. */
static enum err settle(struct loop *loop, uint64_t until, struct error *err) {
    enum err code = loop->work->transactional_id != NULL ? answer_in_transactions(loop, until, err)
                                                         : answer(loop, until, err);
    return code == ERR_OK ? await(&loop->responses, until, err) : code;
}

/* The time begins when all of the warm-up is acknowledged. */
static enum err measure(
    struct loop *loop, double *ns_each, double *cpu_ns_each, struct error *err) {
    const struct kafka_baseline_work *work = loop->work;
    const double measured = (double)(work->messages - work->warm_up);
    enum err code = settle(loop, work->warm_up, err);
    uint64_t started_ns = clock_ns(), started_cpu_ns = cpu_time_process_ns();
    if (code == ERR_OK) code = settle(loop, work->messages, err);
    *ns_each = (double)(clock_ns() - started_ns) / measured;
    *cpu_ns_each = (double)(cpu_time_process_ns() - started_cpu_ns) / measured;
    return code;
}

enum err kafka_baseline_run(const struct kafka_baseline_work *work, double *ns_each,
    double *cpu_ns_each, struct error *err) {
    struct loop loop = {.work = work};
    enum err code = create_consumer(work, &loop.consumer, err);
    if (code == ERR_OK)
        code = create_producer(&work->producer, work->transactional_id, &loop.responses, err);
    if (code == ERR_OK) {
        loop.queue = rd_kafka_queue_get_consumer(loop.consumer);
        code = measure(&loop, ns_each, cpu_ns_each, err);
        rd_kafka_queue_destroy(loop.queue);
    }
    destroy_producer(&loop.responses);
    if (loop.consumer != NULL) {
        rd_kafka_consumer_close(loop.consumer);
        rd_kafka_destroy(loop.consumer);
    }
    return code;
}

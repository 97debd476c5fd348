#include "broker/embedded.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/client.h"
#include "support/scratch.h"
#include "support/wait.h"
#include "testing.h"

static char *topics[] = {"jobs", "results"};

TEST(the_address_is_written_in_one_piece_and_removed_at_the_end) {
    char *folder = scratch_create(), *path, line[128] = "";
    assert_return_code(asprintf(&path, "%s/address", folder), 0);
    struct embedded_options options = {
        .topic_count = 2, .topics = topics, .partitions = 3, .address_file = path};
    struct embedded *embedded = NULL;
    struct error err;
    assert_int_equal(embedded_create(&options, &embedded, &err), ERR_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    assert_string_equal(line, embedded_bootstrap_servers(embedded));
    embedded_destroy(embedded);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left in it */
    free(path);
    free(folder);
}

/* Whether a broker starts, and what then stands at the path where `text` stood. */
static enum err start_beside(const char *path, const char *text, struct embedded **ret) {
    const struct embedded_options options = {.address_file = path};
    struct error err;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    enum err code = embedded_create(&options, ret, &err);
    if (code != ERR_OK) assert_non_null(strstr(err.message, "something else than an address"));
    return code;
}

static void expect_content(const char *path, const char *text) {
    char found[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = 0;
    fclose(file);
    assert_string_equal(found, text);
}

TEST(only_an_address_is_replaced_and_removed) {
    static const char *const others[] = {
        "driver: cpu\n", "a: 1\nb: 2\n", "127.0.0.1:1\nlanes: 1\n", "x"};
    static const char *const addresses[] = {"", "127.0.0.1:4711\n", "127.0.0.1:4711,[::1]:4712\n"};
    char *folder = scratch_create(), *path;
    struct embedded *embedded = NULL;
    assert_return_code(asprintf(&path, "%s/address", folder), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(start_beside(path, others[i], &embedded), ERR_IO);
        expect_content(path, others[i]);
    }
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        assert_int_equal(start_beside(path, addresses[i], &embedded), ERR_OK);
        embedded_destroy(embedded);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_int_equal(start_beside(path, "", &embedded), ERR_OK);
    FILE *file = fopen(path, "w"); /* somebody has put it there since */
    assert_non_null(file);
    fputs("127.0.0.1:4711\n", file);
    fclose(file);
    embedded_destroy(embedded);
    expect_content(path, "127.0.0.1:4711\n");
    free(path);
    scratch_remove(folder);
}

/* ---- clients of it ---- */

enum {
    JOBS = 600,
    JOB_BYTES = 40000,
    LARGE_BYTES = 6 << 20,
    HELD_MS = 1000,
    COMMIT_EVERY = 20,
    POLL_MS = 20
};

static rd_kafka_conf_t *conf_of(const char *servers, const struct client_setting *settings) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", servers, why, sizeof why), 0);
    for (; settings != NULL && settings->key != NULL; settings++)
        assert_int_equal(
            rd_kafka_conf_set(conf, settings->key, settings->value, why, sizeof why), 0);
    return conf;
}

static rd_kafka_t *client_start(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[256];
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    assert_non_null(client);
    return client;
}

/* What became of messages. */
struct answers {
    int acknowledged, too_large;
};

static void note_answer(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    struct answers *answers = rd_kafka_opaque(client);
    answers->acknowledged += message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    answers->too_large += message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
}

static rd_kafka_t *producer_of(const struct embedded *embedded, struct answers *answers) {
    static const struct client_setting settings[] = {
        {"message.max.bytes", "10000000"}, {NULL, NULL}};
    rd_kafka_conf_t *conf = conf_of(embedded_bootstrap_servers(embedded), settings);
    rd_kafka_conf_set_dr_msg_cb(conf, note_answer);
    rd_kafka_conf_set_opaque(conf, answers);
    return client_start(RD_KAFKA_PRODUCER, conf);
}

static void produce(rd_kafka_t *client, size_t size, int number) {
    char *payload = calloc(1, size);
    assert_non_null(payload);
    memcpy(payload, &number, sizeof number);
    assert_int_equal(rd_kafka_producev(client, RD_KAFKA_V_TOPIC("jobs"), RD_KAFKA_V_PARTITION(0),
                         RD_KAFKA_V_VALUE(payload, size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_FREE),
                         RD_KAFKA_V_END),
        RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* A client reads and commits as a worker does, and is in no group. */
static rd_kafka_t *worker_of(const struct embedded *embedded) {
    static const struct client_setting settings[] = {
        {"group.id", "gpu-worker"}, {"enable.auto.commit", "false"}, {NULL, NULL}};
    rd_kafka_t *client =
        client_start(RD_KAFKA_CONSUMER, conf_of(embedded_bootstrap_servers(embedded), settings));
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, "jobs", 0)->offset = 0;
    assert_int_equal(rd_kafka_assign(client, one), 0);
    rd_kafka_topic_partition_list_destroy(one);
    return client;
}

/* The number in the next message; -1: none came. */
static int take_next(rd_kafka_t *worker) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(worker, POLL_MS);
    int number = -1;
    if (message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        memcpy(&number, message->payload, sizeof number);
    if (message != NULL) rd_kafka_message_destroy(message);
    return number;
}

static void take_all(rd_kafka_t *worker, rd_kafka_t *producer, int count) {
    int taken = 0, number = -1;
    WAIT_DOING(taken, ==, count, {
        number = take_next(worker);
        if (number >= 0) assert_int_equal(number, taken++);
        if (number >= 0 && (taken % COMMIT_EVERY == 0 || taken == count))
            rd_kafka_commit(worker, NULL, 1);
        rd_kafka_poll(producer, 0);
    });
}

static struct embedded *broker_of_one_partition(void) {
    const struct embedded_options options = {.topic_count = 2,
        .job_topic_count = 1,
        .topics = topics,
        .group = "gpu-worker",
        .partitions = 1};
    struct embedded *embedded;
    struct error err;
    assert_int_equal(embedded_create(&options, &embedded, &err), ERR_OK);
    return embedded;
}

TEST(no_acknowledged_job_is_dropped_before_it_is_done) {
    struct embedded *embedded = broker_of_one_partition();
    struct answers answers = {0};
    rd_kafka_t *producer = producer_of(embedded, &answers);
    for (int i = 0; i < JOBS; i++) produce(producer, JOB_BYTES, i);
    /* nobody reads yet: what would be dropped is dropped now */
    (void)rd_kafka_flush(producer, HELD_MS);
    rd_kafka_t *worker = worker_of(embedded);
    take_all(worker, producer, JOBS);
    WAIT_DOING(answers.acknowledged, ==, JOBS, rd_kafka_poll(producer, POLL_MS));
    rd_kafka_destroy(producer);
    rd_kafka_destroy(worker);
    embedded_destroy(embedded);
}

TEST(a_message_that_could_push_out_all_others_is_refused) {
    struct embedded *embedded = broker_of_one_partition();
    struct answers answers = {0};
    rd_kafka_t *producer = producer_of(embedded, &answers);
    produce(producer, JOB_BYTES, 0);
    WAIT_DOING(answers.acknowledged, ==, 1, rd_kafka_poll(producer, POLL_MS));
    produce(producer, LARGE_BYTES, 0);
    WAIT_DOING(answers.too_large, ==, 1, rd_kafka_poll(producer, POLL_MS));
    produce(producer, JOB_BYTES, 1);
    rd_kafka_t *worker = worker_of(embedded);
    take_all(worker, producer, 2);
    WAIT_DOING(answers.acknowledged, ==, 2, rd_kafka_poll(producer, POLL_MS));
    rd_kafka_destroy(producer);
    rd_kafka_destroy(worker);
    embedded_destroy(embedded);
}

TEST(a_broker_ends_while_a_producer_waits) {
    struct embedded *embedded = broker_of_one_partition();
    struct answers answers = {0};
    rd_kafka_t *producer = producer_of(embedded, &answers);
    for (int i = 0; i < JOBS; i++) produce(producer, JOB_BYTES, i);
    WAIT_DOING(answers.acknowledged, >, 0, rd_kafka_poll(producer, POLL_MS));
    embedded_destroy(embedded);
    rd_kafka_destroy(producer);
}

TEST(topics_have_the_partitions_that_were_asked_for) {
    struct embedded_options options = {.topic_count = 2, .topics = topics, .partitions = 3};
    struct embedded *embedded = NULL;
    struct error err;
    assert_int_equal(embedded_create(&options, &embedded, &err), ERR_OK);
    rd_kafka_t *client =
        client_start(RD_KAFKA_PRODUCER, conf_of(embedded_bootstrap_servers(embedded), NULL));
    const struct rd_kafka_metadata *metadata;
    assert_int_equal(rd_kafka_metadata(client, 1, NULL, &metadata, 60000), 0);
    assert_int_equal(metadata->topic_cnt, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(metadata->topics[i].partition_cnt, 3);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_destroy(client);
    embedded_destroy(embedded);
}

TEST(an_address_file_that_cannot_be_written_is_an_error_that_names_it) {
    struct embedded_options options = {.address_file = "/dev/null/address"};
    struct embedded *embedded = NULL;
    struct error err;
    assert_int_equal(embedded_create(&options, &embedded, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/dev/null/address"));
    embedded_destroy(NULL);
}

RUN_TESTS(T(the_address_is_written_in_one_piece_and_removed_at_the_end),
    T(only_an_address_is_replaced_and_removed), T(no_acknowledged_job_is_dropped_before_it_is_done),
    T(a_message_that_could_push_out_all_others_is_refused), T(a_broker_ends_while_a_producer_waits),
    T(topics_have_the_partitions_that_were_asked_for),
    T(an_address_file_that_cannot_be_written_is_an_error_that_names_it))

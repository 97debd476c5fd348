/* The clients that settings ask for: of the embedded broker, and of files. */
#include "pipeline/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/clients.h"
#include "broker/embedded.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/run.h"
#include "support/scratch.h"
#include "support/wait.h"

struct fixture {
    struct settings settings;
    char *folder;
};

static char *path_of(const struct fixture *fixture, const char *name) {
    char *path;
    assert_return_code(asprintf(&path, "%s/%s", fixture->folder, name), 0);
    return path;
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_init(LOG_OFF, LOG_TEXT);
    settings_init(&fixture->settings);
    fixture->settings.broker = BROKER_EMBEDDED;
    fixture->folder = scratch_create();
    free(fixture->settings.embedded.address_file);
    fixture->settings.embedded.address_file = path_of(fixture, "address");
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    scratch_remove(fixture->folder);
    settings_fini(&fixture->settings);
    free(fixture);
    return 0;
}

static void connect_embedded(const struct fixture *fixture, struct connection *ret) {
    const struct membership membership = {.instance_id = ""};
    struct error err = {.message = ""};
    if (connect_kafka(&fixture->settings, 0, &membership, NULL, ret, &err) != ERR_OK)
        fail_msg("%s", err.message);
}

static void disconnect(struct connection *connection) {
    reader_destroy(connection->control);
    sink_destroy(connection->telemetry);
    sink_destroy(connection->sink);
    source_destroy(connection->source);
    connection_fini(connection);
}

static void note_code(struct record *record, enum err code, const struct error *err) {
    assert_int_equal(code, ERR_OK);
}

static void send_to(const struct fixture *fixture, const char *topic) {
    struct sink *sink;
    struct error err;
    struct record record = {
        .topic = topic, .payload = slice_of_text("hello"), .on_settled = note_code};
    assert_int_equal(connect_producer(&fixture->settings, &sink, &err), ERR_OK);
    sink_send(sink, &record);
    assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    sink_destroy(sink);
}

/* Whatever else a poll has to do, the message comes in the end. */
static void expect_from_source(struct source *source) {
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end = false;
    WAIT_DOING(delivery != NULL, ==, true,
        assert_int_equal(source_poll(source, KAFKA_POLL_MS, &delivery, &at_end, &err), ERR_OK));
    assert_true(slice_is_text(delivery->payload, "hello"));
    delivery_destroy(delivery);
}

static void expect_from_reader(struct reader *reader) {
    struct delivery *delivery = NULL;
    struct error err;
    WAIT_DOING(delivery != NULL, ==, true,
        assert_int_equal(reader_poll(reader, KAFKA_POLL_MS, &delivery, &err), ERR_OK));
    assert_true(slice_is_text(delivery->payload, "hello"));
    delivery_destroy(delivery);
}

TEST(commands_reach_the_worker_of_an_embedded_broker_by_its_address_file) {
    struct fixture *fixture = *state;
    struct connection connection;
    connect_embedded(fixture, &connection);
    send_to(fixture, fixture->settings.topics.jobs.items[0]);
    expect_from_source(connection.source);
    send_to(fixture, fixture->settings.topics.results);
    struct reader *reader;
    struct error err;
    /* the embedded broker knows no times: what is older comes as well */
    assert_int_equal(connect_reader(&fixture->settings, fixture->settings.topics.results,
                         clock_unix_ms(), &reader, &err),
        ERR_OK);
    expect_from_reader(reader);
    reader_destroy(reader);
    disconnect(&connection);
}

static void take_job(struct source *source, int64_t offset) {
    struct position position;
    WAIT_DOING(consumer_take(source, &position), ==, true, );
    assert_int_equal(position.offset, offset);
    source_finish(source, &position);
}

TEST(the_executor_of_an_embedded_broker_is_in_no_group_and_the_next_one_goes_on_where_it_ended) {
    struct fixture *fixture = *state;
    const char *jobs = fixture->settings.topics.jobs.items[0];
    const struct membership membership = {.instance_id = "", .owner = 1};
    struct connection connections[2];
    struct embedded *embedded;
    struct error err = {.message = ""};
    fixture->settings.embedded.partitions = 1;
    assert_int_equal(connect_start_broker(&fixture->settings, &embedded, &err), ERR_OK);
    send_to(fixture, jobs);
    for (int i = 0; i < 2; i++) {
        if (connect_kafka(&fixture->settings, 0, &membership, embedded_bootstrap_servers(embedded),
                &connections[i], &err) != ERR_OK)
            fail_msg("%s", err.message);
        assert_null(connections[i].embedded);
        take_job(connections[i].source, i);
        char *member = rd_kafka_memberid(consumer_parts(connections[i].source).client);
        assert_true(member == NULL || member[0] == 0);
        if (member != NULL) rd_kafka_mem_free(NULL, member);
        assert_int_equal(source_close(connections[i].source, KAFKA_PATIENCE_MS, &err), ERR_OK);
        disconnect(&connections[i]);
        send_to(fixture, jobs);
    }
    embedded_destroy(embedded);
}

TEST(a_worker_with_a_control_topic_waits_for_absent_brokers_as_any_other) {
    struct fixture *fixture = *state;
    struct connection connection;
    const struct membership membership = {.instance_id = ""};
    struct error err = {.message = ""};
    fixture->settings.broker = BROKER_KAFKA;
    run_set_text(&fixture->settings.kafka.bootstrap_servers, "127.0.0.1:1");
    run_set_text(&fixture->settings.topics.control, "cancels");
    if (connect_kafka(&fixture->settings, 0, &membership, NULL, &connection, &err) != ERR_OK)
        fail_msg("%s", err.message);
    assert_non_null(connection.control);
    disconnect(&connection);
}

TEST(telemetry_and_cancels_have_clients_only_where_the_settings_ask_for_them) {
    struct fixture *fixture = *state;
    struct connection connection;
    run_set_text(&fixture->settings.topics.control, "cancels");
    connect_embedded(fixture, &connection);
    assert_non_null(connection.telemetry);
    send_to(fixture, "cancels");
    expect_from_reader(connection.control);
    disconnect(&connection);

    run_set_text(&fixture->settings.topics.control, "");
    fixture->settings.telemetry.interval_ms = 0;
    connect_embedded(fixture, &connection);
    assert_null(connection.telemetry);
    assert_null(connection.control);
    disconnect(&connection);
}

TEST(without_an_address_file_no_embedded_broker_is_found) {
    struct fixture *fixture = *state;
    struct sink *sink;
    struct reader *reader;
    struct error err;
    run_set_text(&fixture->settings.embedded.address_file, "");
    assert_int_equal(connect_producer(&fixture->settings, &sink, &err), ERR_BROKER);
    assert_non_null(strstr(err.fix, "embedded.address_file"));
    assert_int_equal(
        connect_reader(&fixture->settings, "results", READER_FROM_NOW, &reader, &err), ERR_BROKER);
}

static void count_problem(void *context, const struct error *err) {
    ++*(size_t *)context;
}

TEST(an_embedded_broker_refuses_nobody) {
    struct fixture *fixture = *state;
    size_t count = 0;
    assert_int_equal(connect_check(&fixture->settings, count_problem, &count), ERR_OK);
    assert_int_equal(count, 0);
}

TEST(brokers_that_do_not_answer_are_one_problem_whatever_the_topics) {
    struct fixture *fixture = *state;
    size_t count = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char address[32];
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* ours, and nobody listens at it */
    assert_return_code(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    fixture->settings.broker = BROKER_KAFKA;
    run_set_text(&fixture->settings.kafka.bootstrap_servers, address);
    assert_int_equal(connect_check(&fixture->settings, count_problem, &count), ERR_TIMEOUT);
    assert_int_equal(count, 1);
    close(fd);
}

static int count_open(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(files_that_cannot_be_opened_are_an_error_that_names_them_and_leave_nothing_open) {
    struct fixture *fixture = *state;
    char *jobs = scratch_file(fixture->folder, "\x93\x01\x02\x03", 4);
    char *missing = path_of(fixture, "missing/file"), *results = path_of(fixture, "results");
    const struct file_paths cases[] = {{.jobs = missing, .results = results},
        {.jobs = jobs, .results = missing},
        {.jobs = jobs, .results = results, .dead_letters = missing},
        {.jobs = jobs, .results = results, .telemetry = missing}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct connection connection;
        struct error err;
        int open_before = count_open();
        assert_int_not_equal(
            connect_files(&fixture->settings, &cases[i], NULL, &connection, &err), ERR_OK);
        assert_non_null(strstr(err.message, "missing/file"));
        assert_int_equal(count_open(), open_before);
    }
    free(jobs);
    free(missing);
    free(results);
}

TEST(what_is_written_of_telemetry_is_a_file_of_its_own) {
    struct fixture *fixture = *state;
    char *jobs = scratch_file(fixture->folder, "\x93\x01\x02\x03", 4);
    char *results = path_of(fixture, "results"), *telemetry = path_of(fixture, "telemetry");
    struct file_paths paths = {.jobs = jobs, .results = results};
    struct connection connection;
    struct error err;
    assert_int_equal(connect_files(&fixture->settings, &paths, NULL, &connection, &err), ERR_OK);
    assert_null(connection.telemetry);
    assert_null(connection.progress);
    disconnect(&connection);
    paths.telemetry = telemetry;
    assert_int_equal(connect_files(&fixture->settings, &paths, NULL, &connection, &err), ERR_OK);
    assert_non_null(connection.telemetry);
    assert_return_code(access(telemetry, F_OK), 0);
    disconnect(&connection);
    free(jobs);
    free(results);
    free(telemetry);
}

#define C(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS_AT_ONCE(
    C(the_executor_of_an_embedded_broker_is_in_no_group_and_the_next_one_goes_on_where_it_ended),
    C(commands_reach_the_worker_of_an_embedded_broker_by_its_address_file),
    C(a_worker_with_a_control_topic_waits_for_absent_brokers_as_any_other),
    C(telemetry_and_cancels_have_clients_only_where_the_settings_ask_for_them),
    C(without_an_address_file_no_embedded_broker_is_found), C(an_embedded_broker_refuses_nobody),
    C(brokers_that_do_not_answer_are_one_problem_whatever_the_topics),
    C(files_that_cannot_be_opened_are_an_error_that_names_them_and_leave_nothing_open),
    C(what_is_written_of_telemetry_is_a_file_of_its_own))

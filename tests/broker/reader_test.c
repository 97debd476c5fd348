#include "broker/reader.h"

#include "base/clock.h"
#include "kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

enum { PARTITIONS = 2, HOUR_MS = 3600000 };

static struct broker broker;

static int set_up(void **state) {
    broker_start(&broker, PARTITIONS);
    return 0;
}

static int tear_down(void **state) {
    broker_stop(&broker);
    return 0;
}

static enum err try_to_open(uint64_t from_unix_ms, struct reader **ret, struct error *err) {
    const struct kafka_options options = {.bootstrap_servers = broker.bootstrap};
    return reader_create(&options, broker.jobs, from_unix_ms, KAFKA_PATIENCE_MS, ret, err);
}

static struct reader *open_reader(uint64_t from_unix_ms) {
    struct reader *reader;
    struct error err;
    assert_int_equal(try_to_open(from_unix_ms, &reader, &err), ERR_OK);
    return reader;
}

/* Until all has come that was there when the reader was created; how many came. */
static size_t read_to_the_end(struct reader *reader) {
    size_t count = 0;
    WAIT_DOING(reader_has_caught_up(reader), ==, true, {
        struct delivery *delivery;
        struct error err;
        assert_int_equal(reader_poll(reader, KAFKA_POLL_MS, &delivery, &err), ERR_OK);
        if (delivery != NULL && !reader_is_late(reader, &delivery->position)) count++;
        delivery_destroy(delivery);
    });
    return count;
}

static struct delivery *await_message(struct reader *reader) {
    struct delivery *delivery = NULL;
    struct error err;
    WAIT_DOING(delivery != NULL, ==, true,
        assert_int_equal(reader_poll(reader, KAFKA_POLL_MS, &delivery, &err), ERR_OK));
    return delivery;
}

TEST(from_the_beginning_all_partitions_are_read) {
    broker_produce(&broker, 0, 0, 30);
    broker_produce(&broker, 1, 0, 12);
    struct reader *reader = open_reader(READER_FROM_BEGINNING);
    assert_false(reader_has_caught_up(reader));
    assert_int_equal(read_to_the_end(reader), 42);
    reader_destroy(reader);
}

TEST(an_empty_topic_is_read_to_its_end_at_once) {
    struct reader *reader = open_reader(READER_FROM_BEGINNING);
    assert_true(reader_has_caught_up(reader));
    reader_destroy(reader);
}

TEST(from_now_only_what_is_published_afterwards_comes) {
    broker_produce(&broker, 0, 0, 5);
    struct reader *reader = open_reader(READER_FROM_NOW);
    assert_true(reader_has_caught_up(reader));
    broker_produce(&broker, 0, 5, 1);
    struct delivery *delivery = await_message(reader);
    assert_int_equal(delivery->position.offset, 5);
    assert_true(reader_is_late(reader, &delivery->position));
    delivery_destroy(delivery);
    reader_destroy(reader);
}

TEST(messages_say_when_they_were_published) {
    uint64_t before_ms = clock_unix_ms();
    broker_produce(&broker, 0, 0, 1);
    struct reader *reader = open_reader(READER_FROM_BEGINNING);
    struct delivery *delivery = await_message(reader);
    assert_in_range(delivery->position.published_unix_ms, before_ms, clock_unix_ms());
    delivery_destroy(delivery);
    reader_destroy(reader);
}

TEST(from_a_time_only_what_is_as_new_comes) {
    if (!kafka_is_complete()) skip(); /* the embedded broker cannot look times up */
    broker_produce(&broker, 0, 0, 3);
    struct reader *later = open_reader(clock_unix_ms() + HOUR_MS);
    struct reader *earlier = open_reader(clock_unix_ms() - HOUR_MS);
    assert_true(reader_has_caught_up(later));
    assert_int_equal(read_to_the_end(earlier), 3);
    reader_destroy(later);
    reader_destroy(earlier);
}

TEST(aborted_messages_and_markers_are_passed_over) {
    if (!kafka_is_complete()) skip(); /* the embedded broker takes no transactions */
    broker_produce_in_transaction(&broker, 0, 3, COMMITTED);
    broker_produce_in_transaction(&broker, 0, 4, ABORTED);
    struct reader *reader = open_reader(READER_FROM_BEGINNING);
    assert_int_equal(read_to_the_end(reader), 3);
    reader_destroy(reader);
}

TEST(a_topic_that_is_not_there_is_named) {
    struct reader *reader;
    struct error err;
    const struct kafka_options options = {.bootstrap_servers = broker.bootstrap};
    if (!kafka_is_complete()) skip(); /* embedded brokers create any topic that is asked for */
    assert_int_equal(
        reader_create(&options, "nowhere", READER_FROM_BEGINNING, 2000, &reader, &err), ERR_BROKER);
    assert_non_null(strstr(err.message, "topic 'nowhere'"));
}

TEST(one_that_does_not_wait_asks_when_it_is_polled) {
    struct reader *reader;
    struct error err;
    const struct kafka_options options = {.bootstrap_servers = broker.bootstrap};
    broker_produce(&broker, 0, 0, 3);
    assert_int_equal(
        reader_create(&options, broker.jobs, READER_FROM_BEGINNING, 0, &reader, &err), ERR_OK);
    assert_false(reader_has_caught_up(reader));
    assert_int_equal(read_to_the_end(reader), 3);
    reader_destroy(reader);
}

TEST(without_brokers_nothing_comes_and_the_end_is_not_reached) {
    struct reader *reader;
    struct delivery *delivery;
    struct error err;
    const struct kafka_options options = {.bootstrap_servers = "127.0.0.1:1"};
    assert_int_equal(
        reader_create(&options, broker.jobs, READER_FROM_BEGINNING, 2000, &reader, &err),
        ERR_BROKER);
    assert_true(reader_missed_brokers(&err));
    assert_int_equal(
        reader_create(&options, broker.jobs, READER_FROM_BEGINNING, 0, &reader, &err), ERR_OK);
    assert_int_equal(reader_poll(reader, KAFKA_POLL_MS, &delivery, &err), ERR_OK);
    assert_null(delivery);
    assert_false(reader_has_caught_up(reader));
    reader_destroy(reader);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS_AT_ONCE(F(from_the_beginning_all_partitions_are_read),
    F(an_empty_topic_is_read_to_its_end_at_once),
    F(from_now_only_what_is_published_afterwards_comes), F(messages_say_when_they_were_published),
    F(from_a_time_only_what_is_as_new_comes), F(aborted_messages_and_markers_are_passed_over),
    F(a_topic_that_is_not_there_is_named), F(one_that_does_not_wait_asks_when_it_is_polled),
    F(without_brokers_nothing_comes_and_the_end_is_not_reached))

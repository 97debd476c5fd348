#include "broker/consumer_conf.h"

#include "testing.h"

static void assert_value(
    const struct consumer_options *options, const char *key, const char *expected) {
    char found[32];
    size_t size = sizeof found;
    rd_kafka_conf_t *conf;
    struct error err;
    assert_int_equal(consumer_conf_create(options, &conf, &err), ERR_OK);
    assert_int_equal(rd_kafka_conf_get(conf, key, found, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(found, expected);
    rd_kafka_conf_destroy(conf);
}

static struct consumer_options options_with(char **key, char **value) {
    return (struct consumer_options){.kafka = {.bootstrap_servers = "none",
                                         .setting_count = key != NULL,
                                         .setting_keys = key,
                                         .setting_values = value},
        .group = "group",
        .fetch_ahead_bytes = 1 << 20};
}

TEST(a_fetch_waits_as_long_as_it_is_told_and_the_users_word_goes_first) {
    char *key = "fetch.wait.max.ms", *value = "70";
    struct consumer_options told = options_with(NULL, NULL), both = options_with(&key, &value);
    assert_value(&told, key, "500");
    told.fetch_wait_ms = both.fetch_wait_ms = 2;
    assert_value(&told, key, "2");
    assert_value(&both, key, "70");
}

TEST(the_group_waits_at_least_as_long_as_a_drain_may_take_and_the_users_word_goes_first) {
    char *key = "max.poll.interval.ms", *value = "400000";
    struct consumer_options told = options_with(NULL, NULL), both = options_with(&key, &value);
    told.poll_interval_ms = 35000;
    assert_value(&told, key, "300000");
    told.poll_interval_ms = both.poll_interval_ms = 610000;
    assert_value(&told, key, "610000");
    assert_value(&both, key, "400000");
}

RUN_TESTS(T(a_fetch_waits_as_long_as_it_is_told_and_the_users_word_goes_first),
    T(the_group_waits_at_least_as_long_as_a_drain_may_take_and_the_users_word_goes_first))

#include "broker/consumer_conf.h"

#include "testing.h"

static void assert_fetch_wait(const struct consumer_options *options, const char *expected) {
    char found[32];
    size_t size = sizeof found;
    rd_kafka_conf_t *conf;
    struct error err;
    assert_int_equal(consumer_conf_create(options, &conf, &err), ERR_OK);
    assert_int_equal(rd_kafka_conf_get(conf, "fetch.wait.max.ms", found, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(found, expected);
    rd_kafka_conf_destroy(conf);
}

static void a_fetch_waits_as_long_as_it_is_told_and_the_users_word_goes_first(void **state) {
    char *key = "fetch.wait.max.ms", *value = "70";
    struct consumer_options options = {
        .kafka = {.bootstrap_servers = "none"}, .group = "group", .fetch_ahead_bytes = 1 << 20};
    assert_fetch_wait(&options, "500");
    options.fetch_wait_ms = 2;
    assert_fetch_wait(&options, "2");
    options.kafka.setting_count = 1;
    options.kafka.setting_keys = &key;
    options.kafka.setting_values = &value;
    assert_fetch_wait(&options, "70");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetch_waits_as_long_as_it_is_told_and_the_users_word_goes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

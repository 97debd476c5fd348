#include "broker/embedded.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"
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

TEST(topics_have_the_partitions_that_were_asked_for) {
    struct embedded_options options = {.topic_count = 2, .topics = topics, .partitions = 3};
    struct embedded *embedded = NULL;
    struct error err;
    char why[256];
    assert_int_equal(embedded_create(&options, &embedded, &err), ERR_OK);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(
        conf, "bootstrap.servers", embedded_bootstrap_servers(embedded), why, sizeof why);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
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
    T(only_an_address_is_replaced_and_removed), T(topics_have_the_partitions_that_were_asked_for),
    T(an_address_file_that_cannot_be_written_is_an_error_that_names_it))

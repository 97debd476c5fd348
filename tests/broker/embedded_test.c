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
    T(topics_have_the_partitions_that_were_asked_for),
    T(an_address_file_that_cannot_be_written_is_an_error_that_names_it))

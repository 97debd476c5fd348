#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

static struct settings settings;
static struct problems problems;

static int set_up(void **state) {
    settings_init(&settings);
    problems_init(&problems);
    return 0;
}

static int tear_down(void **state) {
    settings_fini(&settings);
    problems_fini(&problems);
    return 0;
}

static void parse(const char *text) {
    tear_down(NULL);
    set_up(NULL);
    settings_parse(&settings, "w.yaml", slice_of_text(text), &problems);
}

static void expect_good(const char *text) {
    parse(text);
    if (problems_any(&problems)) fail_msg("%s", problems.items[0].what);
}

/* The text has this problem alone. */
static void expect_problem(const char *text, const char *where, const char *what, const char *fix) {
    parse(text);
    if (problems.count > 0) { /* the likelier one to tell what went wrong first */
        assert_string_equal(problems.items[0].what, what);
        assert_string_equal(problems.items[0].where, where);
        assert_string_equal(problems.items[0].fix, fix);
    }
    assert_int_equal(problems_total(&problems), 1);
}

static char *print(const struct settings *which) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    settings_print(which, out);
    fclose(out);
    return text;
}

TEST(defaults_are_ready_for_use) {
    settings_load(&settings, NULL, &problems);
    assert_false(problems_any(&problems));
    assert_int_equal(settings.driver, DRIVER_CUDA);
    assert_int_equal(settings.lanes, 8);
    assert_int_equal(settings.lane_slab_bytes, 4 << 20);
    assert_int_equal(settings.lane_wait, LANE_WAIT_BLOCK);
    assert_int_equal(settings.broker, BROKER_KAFKA);
    assert_string_equal(settings.kafka.group, "gpu-worker");
    assert_int_equal(settings.kafka.consumer.count, 0);
    assert_int_equal(settings.topics.jobs.count, 1);
    assert_string_equal(settings.topics.jobs.items[0], "gpu-jobs");
    assert_int_equal(settings.limits.message_bytes, 1 << 20);
    assert_int_equal(settings.limits.result_bytes, 1000000);
    assert_int_equal(settings.log.level, LOG_INFO);
}

TEST(values_of_every_type_are_taken) {
    expect_good("driver: cpu\n"
                "lanes: 3\n"
                "lane_slab_bytes: 64KiB\n"
                "lane_wait: spin\n"
                "commit_interval_ms: 2s\n"
                "executors: {spare: true}\n"
                "kafka:\n"
                "  group: 'my group'\n"
                "  consumer: {auto.offset.reset: latest, fetch.wait.max.ms: 10}\n"
                "topics:\n"
                "  jobs: [a, \"b\"]\n");
    assert_int_equal(settings.driver, DRIVER_CPU);
    assert_int_equal(settings.lanes, 3);
    assert_int_equal(settings.lane_slab_bytes, 65536);
    assert_int_equal(settings.lane_wait, LANE_WAIT_SPIN);
    assert_int_equal(settings.commit_interval_ms, 2000);
    assert_true(settings.executors.spare);
    assert_string_equal(settings.kafka.group, "my group");
    assert_int_equal(settings.kafka.consumer.count, 2);
    assert_string_equal(settings.kafka.consumer.keys[1], "fetch.wait.max.ms");
    assert_string_equal(settings.kafka.consumer.values[1], "10");
    assert_int_equal(settings.topics.jobs.count, 2);
    assert_string_equal(settings.topics.jobs.items[1], "b");
}

TEST(durations_and_sizes_take_their_units) {
    static const struct {
        const char *text;
        uint32_t ms;
    } durations[] = {
        {"0", 0}, {"250", 250}, {"250ms", 250}, {"20s", 20000}, {"5m", 300000}, {"1h", 3600000}};
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"0", 0}, {"1048577", 1048577}, {"64KiB", 65536}, {"64MiB", 67108864},
        {"3GiB", 3221225472}, {"1TiB", 1099511627776}};
    char text[64];
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        snprintf(text, sizeof text, "drain_timeout_ms: %s", durations[i].text);
        expect_good(text);
        assert_int_equal(settings.drain_timeout_ms, durations[i].ms);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(text, sizeof text, "statics: {budget_bytes: %s}", sizes[i].text);
        expect_good(text);
        assert_int_equal(settings.statics.budget_bytes, sizes[i].bytes);
    }
}

TEST(numbers_that_are_none_are_refused) {
    static const char *const bad[] = {"-1", "1.5", "64MB", "64 MiB", "MiB", "010", "0x10", "many",
        "18446744073709551616", "18446744073709551615KiB", "[1]", "{a: 1}", "~", "''"};
    char text[64];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "limits:\n  job_bytes: %s\n", bad[i]);
        parse(text);
        assert_int_equal(problems_total(&problems), 1);
        assert_string_equal(problems.items[0].where, "w.yaml:2:14");
        assert_int_equal(settings.limits.job_bytes, 1 << 30);
    }
}

TEST(values_out_of_range_are_refused_with_the_range) {
    expect_problem("lanes: 0\n", "w.yaml:1:8", "lanes is 0, outside 1 to 64", "");
    expect_problem("lanes: 65\n", "w.yaml:1:8", "lanes is 65, outside 1 to 64", "");
    expect_problem(
        "lane_slab_bytes: 1\n", "w.yaml:1:18", "lane_slab_bytes is 1, outside 64KiB to 1GiB", "");
    expect_problem(
        "drain_timeout_ms: 61m\n", "w.yaml:1:19", "drain_timeout_ms is 61m, outside 0ms to 1h", "");
    assert_int_equal(settings.drain_timeout_ms, 25000);
}

TEST(an_unknown_key_is_refused_with_the_nearest_known_one) {
    expect_problem("drivr: cpu\n", "w.yaml:1:1", "unknown key 'drivr'", "did you mean 'driver'?");
    expect_problem(
        "log:\n  levle: info\n", "w.yaml:2:3", "unknown key 'levle'", "did you mean 'level'?");
    expect_problem("limit: {}\n", "w.yaml:1:1", "unknown key 'limit'", "did you mean 'limits'?");
    expect_problem("something_else: 1\n", "w.yaml:1:1", "unknown key 'something_else'",
        "'gpu-worker config defaults' prints all keys");
}

TEST(a_key_in_the_wrong_place_is_refused_with_the_right_one) {
    expect_problem("group: x\n", "w.yaml:1:1", "unknown key 'group'",
        "did you mean 'group' in the section kafka?");
    expect_problem("kafka.group: x\n", "w.yaml:1:1", "unknown key 'kafka.group'",
        "did you mean 'group' in the section kafka?");
    expect_problem("log: {lanes: 2}\n", "w.yaml:1:7", "unknown key 'lanes'",
        "did you mean 'lanes' at the top level?");
}

TEST(wrong_kinds_are_refused) {
    expect_problem(
        "driver: [cpu]\n", "w.yaml:1:9", "driver cannot be ''", "write one of cuda, cpu");
    expect_problem("driver: cud\n", "w.yaml:1:9", "driver cannot be 'cud'", "did you mean 'cuda'?");
    expect_problem("topics: {results: [a]}\n", "w.yaml:1:19",
        "the value of topics.results is not a string",
        "write a string, or {file: path} to take a file's contents");
    expect_problem("executors: {spare: maybe}\n", "w.yaml:1:20",
        "executors.spare cannot be 'maybe'", "write one of false, true");
    expect_problem(
        "topics: {jobs: a}\n", "w.yaml:1:16", "topics.jobs is not a list", "write [first, second]");
    expect_problem("kafka: {consumer: [a]}\n", "w.yaml:1:19", "kafka.consumer is not a map",
        "write {key: value}");
    expect_problem("kafka: {producer: {sasl: {password: hunter2}}}\n", "w.yaml:1:26",
        "sasl of kafka.producer is not a string",
        "write a string, or {file: path} to take a file's contents");
    expect_problem(
        "log: text\n", "w.yaml:1:6", "log is not a section", "write keys and values below it");
    expect_problem(
        "[a, b]\n", "w.yaml:1:1", "the file is not a section", "write keys and values below it");
    expect_problem("topics: {results: null}\n", "w.yaml:1:19",
        "the value of topics.results is not a string",
        "write a string, or {file: path} to take a file's contents");
}

TEST(what_must_not_be_empty_is_refused) {
    expect_problem("kafka: {group: ''}\n", "w.yaml:1:16", "kafka.group is empty",
        "give a value or remove the key");
    expect_problem("topics: {jobs: []}\n", "w.yaml:1:16", "topics.jobs is empty",
        "give a value or remove the key");
}

TEST(telemetry_comes_within_an_hour_or_never_and_not_as_jobs) {
    expect_good("telemetry: {interval_ms: 0}\n");
    expect_good("telemetry: {interval_ms: 1h}\n");
    expect_problem("telemetry: {interval_ms: 3600001ms}\n", "w.yaml:1:26",
        "telemetry.interval_ms is 3600001ms, outside 0ms to 1h", "");
    expect_problem("topics: {telemetry: gpu-jobs}\n", "w.yaml:1:21",
        "telemetry would come back as jobs: 'gpu-jobs'", "");
}

TEST(a_section_may_be_empty) {
    expect_good("log:\nkafka:\n  consumer:\n");
}

TEST(every_problem_is_reported_at_once) {
    unsetenv("SETTINGS_TEST");
    parse("drivr: cpu\nlanes: 0\nlanes: 9\nkafka:\n  group: ${SETTINGS_TEST}\n  consumer: {acks: "
          "1}\n");
    assert_int_equal(problems_total(&problems), 5);
}

TEST(values_come_from_the_environment) {
    setenv("SETTINGS_TEST", "12", 1);
    expect_good(
        "lanes: ${SETTINGS_TEST}\nkafka: {group: \"g-${SETTINGS_TEST}-${SETTINGS_NONE:-x}\"}\n");
    assert_int_equal(settings.lanes, 12);
    assert_string_equal(settings.kafka.group, "g-12-x");
}

TEST(values_come_from_files_without_the_last_line_end) {
    char *folder = scratch_create(), *text;
    char *path = scratch_file(folder, "hunter2\r\n", 9);
    assert_return_code(
        asprintf(&text, "kafka:\n  consumer: {sasl.password: {file: %s}}\n", path), 0);
    expect_good(text);
    assert_string_equal(settings.kafka.consumer.values[0], "hunter2");
    unlink(path);
    parse(text);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.items[0].where, "w.yaml:2:36");
    free(text);
    free(path);
    scratch_remove(folder);
}

TEST(a_secret_file_that_is_no_text_is_refused) {
    char *folder = scratch_create(), *text;
    char *path = scratch_file(folder, "a\0b", 3);
    assert_return_code(asprintf(&text, "kafka: {group: {file: %s}}\n", path), 0);
    parse(text);
    assert_int_equal(problems_total(&problems), 1);
    assert_non_null(strstr(problems.items[0].what, "not a text file"));
    free(text);
    free(path);
    scratch_remove(folder);
}

TEST(keys_that_would_void_a_guarantee_are_refused_by_name) {
    static const char *const refused[] = {"bootstrap.servers", "metadata.broker.list", "group.id",
        "enable.auto.commit", "auto.commit.interval.ms", "enable.auto.offset.store", "acks",
        "request.required.acks", "enable.idempotence", "transactional.id",
        "partition.assignment.strategy", "enable.partition.eof", "enabled_events",
        "group.instance.id", "isolation.level"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "kafka:\n  consumer:\n    %s: x\n", refused[i]);
        parse(text);
        assert_int_equal(problems_total(&problems), 1);
        assert_string_equal(problems.items[0].where, "w.yaml:3:5");
        assert_non_null(strstr(problems.items[0].what, refused[i]));
        snprintf(text, sizeof text, "kafka:\n  producer:\n    %s: x\n", refused[i]);
        parse(text);
        assert_int_equal(problems_total(&problems), 1);
    }
    expect_good("kafka: {consumer: {auto.offset.reset: latest, debug: all}}\n");
}

TEST(a_member_has_a_name_that_kafka_takes) {
    expect_good("kafka: {instance_id: gpu-worker-0.rack_2}\n");
    assert_string_equal(settings.kafka.instance_id, "gpu-worker-0.rack_2");
    expect_problem("kafka: {instance_id: 'no spaces'}\n", "w.yaml:1:22",
        "'no spaces' cannot be the name of a group's member",
        "use letters, digits, '.', '_' and '-', at most 240");
}

TEST(too_many_requests_in_flight_are_refused) {
    expect_good("kafka: {producer: {max.in.flight: 5}}\n");
    expect_problem("kafka: {producer: {max.in.flight: 6}}\n", "w.yaml:1:20",
        "kafka.producer must not set 'max.in.flight' over 5: more requests under way can change "
        "the order of results",
        "");
}

TEST(combinations_that_cannot_work_are_refused) {
    expect_good("kafka: {consumer: {max.poll.interval.ms: 35000}}\n");
    expect_problem("kafka: {consumer: {max.poll.interval.ms: 34999}}\n", "w.yaml:1:20",
        "kafka.consumer must not set 'max.poll.interval.ms' under drain_timeout_ms and 10 s, "
        "35000: the group does not wait longer for a worker that gives partitions back",
        "raise it, remove it, or lower drain_timeout_ms");
    expect_problem("limits: {bytes_in_flight: 1KiB}\n", "w.yaml:1:27",
        "limits.bytes_in_flight is less than one message of limits.message_bytes",
        "raise it to several messages");
    expect_problem("kafka: {producer: {message.max.bytes: 500000}}\n", "w.yaml",
        "limits.result_bytes is more than message.max.bytes of kafka.producer",
        "lower it, or raise message.max.bytes");
    expect_problem("broker: embedded\nkafka: {bootstrap_servers: 'a:1'}\n", "w.yaml:2:28",
        "kafka.bootstrap_servers has no meaning with broker: embedded", "remove one of them");
    expect_problem("driver: cpu\nlane_slab_bytes: 128MiB\n", "w.yaml:2:18",
        "8 lanes with 2 batches in flight each, of lane_slab_bytes each, do not fit into "
        "cpu_driver.memory_bytes",
        "raise cpu_driver.memory_bytes");
    expect_problem("limits: {timeout_ms: 11m}\n", "w.yaml:1:22",
        "limits.timeout_ms is more than limits.timeout_max_ms",
        "lower it, or raise limits.timeout_max_ms");
    expect_problem("limits: {timeout_min_ms: 61s}\n", "w.yaml",
        "limits.timeout_ms is less than limits.timeout_min_ms",
        "raise it, or lower limits.timeout_min_ms");
}

TEST(devices_are_all_or_a_list_of_numbers_and_uuids) {
    expect_good("devices: [0, 1023, GPU-0a1b2c3d-0000-1111-2222-333344445555]\n");
    assert_int_equal(settings.devices.count, 3);
    expect_good("devices: all\n");
    assert_int_equal(settings.devices.count, 0);

    const char *fix = "nvidia-smi -L lists numbers and UUIDs";
    expect_problem("devices: 1\n", "w.yaml:1:10", "devices is neither a list nor the word all",
        "write all, a list of numbers such as [0, 2], or a list of UUIDs");
    expect_problem(
        "devices: []\n", "w.yaml:1:10", "devices is empty", "give a value or remove the key");
    expect_problem("devices: [1024]\n", "w.yaml:1:10",
        "'1024' is neither the number nor the UUID of a device", fix);
    expect_problem("devices: [GPU-0a1b]\n", "w.yaml:1:10",
        "'GPU-0a1b' is neither the number nor the UUID of a device", fix);
    expect_problem("devices: [1, 1]\n", "w.yaml:1:10", "device '1' is in the list twice",
        "remove one of them");
}

TEST(topics_are_names_and_do_not_loop) {
    expect_problem("topics: {results: 'a b'}\n", "w.yaml:1:19", "'a b' cannot be a topic's name",
        "use letters, digits, '.', '_' and '-', at most 249");
    expect_problem("topics: {jobs: [a, a]}\n", "w.yaml:1:16", "topic 'a' is in one list twice",
        "remove one of them");
    expect_problem("topics: {results: gpu-jobs}\n", "w.yaml:1:19",
        "results would come back as jobs: 'gpu-jobs'", "");
    expect_problem("topics: {dead_letters: gpu-jobs}\n", "w.yaml:1:24",
        "dead letters would come back as jobs: 'gpu-jobs'", "");
    expect_problem("topics: {dead_letters: gpu-results}\n", "w.yaml:1:24",
        "results and dead letters share the topic 'gpu-results'", "give them a topic of their own");
    expect_problem("topics: {reply_to: [gpu-jobs]}\n", "w.yaml:1:20",
        "results must not go to 'gpu-jobs': it is for jobs or dead letters", "");
    expect_good("topics: {reply_to: [gpu-results, other]}\n");
}

TEST(the_first_of_two_values_of_a_key_counts_if_the_second_is_wrong) {
    static const char *const seconds[] = {"dda", "[a]", "{client.id: ~}"};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        char text[128];
        snprintf(text, sizeof text,
            "kafka:\n  consumer: {client.rack: a, enable.auto.commit: t}\nkafka:\n  consumer: %s\n",
            seconds[i]);
        parse(text);
        assert_int_equal(problems_total(&problems), 3);
        assert_string_equal(problems.items[0].where, "w.yaml:3:1");
        assert_string_equal(problems.items[0].what, "key 'kafka' appears twice, first in line 1");
        assert_string_equal(problems.items[2].where, "w.yaml:2:30");
        assert_int_equal(settings.kafka.consumer.count, 2);
    }
}

TEST(what_is_printed_loads_to_the_same) {
    expect_good("driver: cpu\n"
                "broker: embedded\n"
                "commit_interval_ms: 1500\n"
                "lane_slab_bytes: 65537\n"
                "kafka:\n"
                "  group: \"a $$ \\\" \\\\ \\n \\x85 \\u20AC \\U0001F600 ${SETTINGS_NONE:-b}\"\n"
                "  consumer: {'a\"b': \"{x}\", \"\\u2028\": y, '${k}': z}\n"
                "topics: {jobs: [a, b], reply_to: [c]}\n");
    char *text = print(&settings);
    expect_good(text);
    assert_string_equal(settings.kafka.group, "a $ \" \\ \n \xc2\x85 \u20ac \U0001F600 b");
    assert_string_equal(settings.kafka.consumer.keys[2], "${k}");
    char *again = print(&settings);
    assert_string_equal(text, again);
    free(text);
    free(again);
}

TEST(a_blob_store_is_a_folder_or_a_url_with_a_cache) {
    expect_good("blobs: {dir: /blobs, max_age_hours: 1000000}\nresults: {inline_max_bytes: 1}\n");
    expect_good("blobs: {url: 'https://a/b', cache_dir: /c, cache_bytes: 0, timeout_ms: 1h}\n"
                "results: {inline_max_bytes: 1TiB}\n");
    expect_problem("results: {inline_max_bytes: 1}\n", "w.yaml:1:29",
        "results.inline_max_bytes needs a blob store", "set blobs.dir or blobs.url");
    expect_problem("blobs: {dir: /b, cache_dir: /c, url: 'http://a'}\n", "w.yaml:1:38",
        "the blob store is either blobs.dir or blobs.url", "remove one of them");
    expect_problem("blobs: {url: 'http://a'}\n", "w.yaml:1:14",
        "blobs.url needs a folder for what is fetched",
        "set blobs.cache_dir to a folder on a local disk");
    static const char *const urls[] = {"ftp://hunter2@a", "a/b", "http://a/?key=hunter2"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "blobs: {cache_dir: /c, url: '%s'}\n", urls[i]);
        expect_problem(text, "w.yaml:1:29",
            "blobs.url is not an http or https URL that a path can follow",
            "write it as https://host/path");
    }
}

TEST(a_collector_of_traces_is_a_url_of_http_without_a_query) {
    expect_good("tracing: {otlp_url: 'http://collector:4318'}\n");
    expect_good("tracing: {otlp_url: 'https://me:hunter2@collector/v1/traces'}\n");
    expect_problem("tracing: {otlp_url: 'http://collector/?key=hunter2'}\n", "w.yaml:1:21",
        "tracing.otlp_url is not an http or https URL that a path can follow",
        "write it as http://collector:4318");
    expect_problem("tracing: {otlp_url: 'collector:4317'}\n", "w.yaml:1:21",
        "tracing.otlp_url is not an http or https URL that a path can follow",
        "write it as http://collector:4318");
}

TEST(blob_settings_out_of_range_are_refused) {
    expect_problem(
        "blobs: {bytes_max: 0}\n", "w.yaml:1:20", "blobs.bytes_max is 0, outside 1 to 1TiB", "");
    expect_problem("blobs: {timeout_ms: 99}\n", "w.yaml:1:21",
        "blobs.timeout_ms is 99, outside 100ms to 1h", "");
    expect_problem("blobs: {max_age_hours: 1000001}\n", "w.yaml:1:24",
        "blobs.max_age_hours is 1000001, outside 0 to 1000000", "");
    expect_problem("blobs: {cache_bytes: 1025TiB}\n", "w.yaml:1:22",
        "blobs.cache_bytes is 1025TiB, outside 0 to 1024TiB", "");
    expect_problem("blobs: {dir: /b}\nresults: {inline_max_bytes: 2TiB}\n", "w.yaml:2:29",
        "results.inline_max_bytes is 2TiB, outside 0 to 1TiB", "");
}

TEST(metrics_are_served_at_a_host_and_a_port) {
    expect_good("http: {listen: '127.0.0.1:9400'}\n");
    expect_good("http: {listen: '[::1]:9400'}\n");
    expect_good("http: {listen: ''}\n");
    expect_problem("http: {listen: '9400'}\n", "w.yaml:1:16", "'9400' is not a host with a port",
        "write it as 127.0.0.1:9400 or [::1]:9400");
    expect_good("http: {listen: '[::1]:9400', token_file: /run/secrets/token}\n");
    expect_problem("http: {token_file: /run/secrets/token}\n", "w.yaml:1:20",
        "http.token_file has no effect while http.listen is empty",
        "set http.listen, or remove http.token_file");
}

TEST(the_credentials_of_a_url_are_never_printed) {
    expect_good("blobs: {url: 'https://me:hunter2@a/b', cache_dir: /c@d}\n");
    char *text = print(&settings);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "url: \"https://***@a/b\""));
    assert_non_null(strstr(text, "cache_dir: \"/c@d\""));
    expect_good(text);
    free(text);
}

TEST(secrets_are_never_printed) {
    expect_good("kafka:\n"
                "  consumer: {sasl.username: me, sasl.password: hunter2}\n"
                "  producer: {ssl.key.pem: hunter2, ssl.key.password: hunter2,\n"
                "    sasl.oauthbearer.client.secret: hunter2, SASL.PASSWORD: hunter2}\n");
    char *text = print(&settings);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "\"sasl.username\": \"me\""));
    assert_non_null(strstr(text, "\"sasl.password\": \"***\""));
    free(text);
}

TEST(a_secret_in_the_wrong_place_is_not_printed_either) {
    parse("kafka: {consumer: {sasl.password: [hunter2]}}\n");
    assert_int_equal(problems_total(&problems), 1);
    assert_null(strstr(problems.items[0].what, "hunter2"));
    assert_null(strstr(problems.items[0].fix, "hunter2"));
}

static char *print_with(void (*page)(FILE *out)) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    page(out);
    fclose(out);
    return text;
}

TEST(printed_defaults_are_a_file_that_changes_nothing) {
    char *page = print_with(settings_print_defaults), *before = print(&settings);
    expect_good(page);
    char *after = print(&settings);
    assert_string_equal(before, after);
    free(page);
    free(before);
    free(after);
}

TEST(the_table_and_the_schema_name_every_setting) {
    char *table = print_with(settings_print_table), *schema = print_with(settings_print_schema);
    char *effective = print(&settings), *rest = NULL;
    for (char *line = strtok_r(effective, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[80], in_schema[84];
        line += strspn(line, " ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, ":"), line);
        assert_non_null(strstr(table, name));
        snprintf(in_schema, sizeof in_schema, "\"%s\"", name);
        assert_non_null(strstr(schema, in_schema));
    }
    free(table);
    free(schema);
    free(effective);
}

TEST(programs_are_looked_for_beside_the_binary) {
    char *dir = settings_programs_dir(&settings);
    assert_non_null(dir);
    const char *end = strstr(dir, "/share/gpu-worker/programs");
    assert_non_null(end);
    assert_string_equal(end, "/share/gpu-worker/programs");
    assert_int_equal(dir[0], '/');
    free(dir);
    expect_good("programs: {dir: here}\n");
    dir = settings_programs_dir(&settings);
    assert_string_equal(dir, "here");
    free(dir);
}

TEST_MAIN() {
#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {S(defaults_are_ready_for_use),
        S(values_of_every_type_are_taken), S(durations_and_sizes_take_their_units),
        S(numbers_that_are_none_are_refused), S(values_out_of_range_are_refused_with_the_range),
        S(an_unknown_key_is_refused_with_the_nearest_known_one),
        S(a_key_in_the_wrong_place_is_refused_with_the_right_one), S(wrong_kinds_are_refused),
        S(what_must_not_be_empty_is_refused),
        S(telemetry_comes_within_an_hour_or_never_and_not_as_jobs), S(a_section_may_be_empty),
        S(every_problem_is_reported_at_once), S(values_come_from_the_environment),
        S(values_come_from_files_without_the_last_line_end),
        S(a_secret_file_that_is_no_text_is_refused),
        S(keys_that_would_void_a_guarantee_are_refused_by_name),
        S(a_member_has_a_name_that_kafka_takes), S(too_many_requests_in_flight_are_refused),
        S(combinations_that_cannot_work_are_refused),
        S(devices_are_all_or_a_list_of_numbers_and_uuids), S(topics_are_names_and_do_not_loop),
        S(the_first_of_two_values_of_a_key_counts_if_the_second_is_wrong),
        S(what_is_printed_loads_to_the_same), S(a_blob_store_is_a_folder_or_a_url_with_a_cache),
        S(a_collector_of_traces_is_a_url_of_http_without_a_query),
        S(blob_settings_out_of_range_are_refused), S(metrics_are_served_at_a_host_and_a_port),
        S(the_credentials_of_a_url_are_never_printed), S(secrets_are_never_printed),
        S(a_secret_in_the_wrong_place_is_not_printed_either),
        S(printed_defaults_are_a_file_that_changes_nothing),
        S(the_table_and_the_schema_name_every_setting),
        S(programs_are_looked_for_beside_the_binary)};
#undef S
    return cmocka_run_group_tests(tests, NULL, NULL);
}

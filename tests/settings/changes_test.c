#include "settings/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static struct settings running, loaded;
static struct problems problems;

static void parse(struct settings *settings, const char *text) {
    settings_init(settings);
    settings_parse(settings, "w.yaml", slice_of_text(text), &problems);
    assert_false(problems_any(&problems));
}

static int set_up(void **state) {
    problems_init(&problems);
    return 0;
}

static int tear_down(void **state) {
    settings_fini(&running);
    settings_fini(&loaded);
    problems_fini(&problems);
    return 0;
}

static char *print(const struct settings *settings) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    settings_print(settings, out);
    fclose(out);
    return text;
}

static void expect_alike(const struct settings *a, const struct settings *b) {
    char *one = print(a), *other = print(b);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

TEST(a_copy_has_every_value_and_owns_it) {
    parse(&running,
        "driver: cpu\nlanes: 3\ndevices: [0, 1]\ntopics: {jobs: [a, b], reply_to: [c]}\n"
        "kafka: {group: g, consumer: {fetch.min.bytes: 2}}\nlimits: {job_bytes: 2MiB}\n");
    assert_true(settings_copy(&running, &loaded));
    expect_alike(&running, &loaded);
    assert_int_equal(settings_find_fixed_changes(&running, &loaded).count, 0);
    assert_ptr_not_equal(running.kafka.group, loaded.kafka.group);
    assert_ptr_not_equal(running.topics.jobs.items[1], loaded.topics.jobs.items[1]);
}

static void expect_text(const char *text) {
    char described[FIXED_CHANGES_TEXT_SIZE];
    struct fixed_changes changes = settings_find_fixed_changes(&running, &loaded);
    assert_string_equal(fixed_changes_describe(&changes, described), text);
}

TEST(what_does_not_reload_is_named_by_the_first_and_a_count) {
    parse(&running, "{}");
    parse(&loaded, "kafka: {group: g}\nlog: {level: debug}\n");
    expect_text("kafka.group has changed; it takes effect at the next start");
    settings_fini(&loaded);
    parse(&loaded, "lanes: 3\nkafka: {group: g}\n");
    expect_text("lanes and 1 more setting have changed; they take effect at the next start");
    settings_fini(&loaded);
    parse(&loaded, "kafka: {group: g, producer: {linger.ms: 1}}\ntopics: {jobs: [a]}\n");
    expect_text("kafka.group and 2 more settings have changed; they take effect at the next start");
}

TEST(what_does_not_reload_stays_and_what_does_changes) {
    struct settings expected;
    parse(&running, "lanes: 2\nkafka: {group: before}\ndevices: [1]\nretry: {max_attempts: 2}\n");
    parse(&loaded, "lanes: 3\nkafka: {group: after}\nretry: {max_attempts: 3}\n"
                   "topics: {jobs: [x], reply_to: [y]}\n");
    parse(&expected, "lanes: 2\nkafka: {group: before}\ndevices: [1]\nretry: {max_attempts: 3}\n"
                     "topics: {reply_to: [y]}\n");
    settings_keep_fixed(&running, &loaded, "w.yaml", &problems);
    assert_false(problems_any(&problems));
    expect_alike(&loaded, &expected);
    settings_fini(&expected);
}

TEST(what_changes_must_go_together_with_what_stays) {
    parse(&running, "kafka: {producer: {message.max.bytes: 1000000}}\n");
    parse(&loaded, "kafka: {producer: {message.max.bytes: 3000000}}\n"
                   "limits: {result_bytes: 2000000}\n");
    settings_keep_fixed(&running, &loaded, "w.yaml", &problems);
    assert_int_equal(problems_total(&problems), 1);
    assert_non_null(strstr(problems.items[0].what, "limits.result_bytes is more"));
}

TEST(a_file_with_nothing_in_it_is_no_configuration) {
    static const char *const empty[] = {"", "\n", "# all that is written so far\n", "---\n"};
    settings_init(&loaded);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        settings_parse(&loaded, "w.yaml", slice_of_text(empty[i]), &problems);
        assert_int_equal(problems_total(&problems), i + 1);
        assert_string_equal(problems.items[i].what, "nothing stands in it");
    }
    settings_fini(&loaded);
    problems_fini(&problems);
    problems_init(&problems);
    parse(&loaded, "{}");
}

TEST(no_topic_is_one_of_kafkas_own) {
    static const char *const places[][2] = {{"jobs: [a, ", "]"}, {"reply_to: [", "]"},
        {"results: ", ""}, {"dead_letters: ", ""}, {"telemetry: ", ""}, {"control: ", ""}};
    static const char *const names[] = {"__consumer_offsets", "__transaction_state", "__new"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            char text[80];
            snprintf(text, sizeof text, "topics: {%s%s%s}\n", places[i][0], names[n], places[i][1]);
            settings_init(&loaded);
            settings_parse(&loaded, "w.yaml", slice_of_text(text), &problems);
            assert_int_equal(problems_total(&problems), 1);
            assert_non_null(strstr(problems.items[0].what, "is a topic of Kafka's own"));
            settings_fini(&loaded);
            problems_fini(&problems);
            problems_init(&problems);
        }
    settings_init(&loaded);
}

TEST(the_driver_and_the_broker_are_for_life) {
    parse(&running, "driver: cpu\n");
    parse(&loaded, "broker: embedded\n");
    settings_keep_fixed(&running, &loaded, "w.yaml", &problems);
    assert_int_equal(problems_total(&problems), 2);
    assert_string_equal(
        problems.items[0].what, "driver has changed, which a worker that runs cannot follow");
    assert_string_equal(
        problems.items[1].what, "broker has changed, which a worker that runs cannot follow");
    assert_string_equal(
        problems.items[0].fix, "change it back, or stop the worker and start it again");
}

TEST_MAIN() {
#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {S(a_copy_has_every_value_and_owns_it),
        S(what_does_not_reload_is_named_by_the_first_and_a_count),
        S(what_does_not_reload_stays_and_what_does_changes),
        S(what_changes_must_go_together_with_what_stays),
        S(a_file_with_nothing_in_it_is_no_configuration), S(no_topic_is_one_of_kafkas_own),
        S(the_driver_and_the_broker_are_for_life)};
#undef S
    return cmocka_run_group_tests(tests, NULL, NULL);
}

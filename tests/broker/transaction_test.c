#include "broker/transaction.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/clients.h"
#include "broker/entries.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

enum { COUNT = 6 };

/* A worker between a topic of COUNT messages, all taken, and the topic of results. */
struct rig {
    struct broker broker;
    struct events events;
    struct source *source;
    struct sink *sink;
    struct position positions[COUNT];
    struct sent sent[COUNT];
};

static struct sink *open_sink(struct rig *rig) {
    struct transaction_options options = {
        .producer = {.kafka = {.bootstrap_servers = rig->broker.bootstrap,
                         .on_event = events_note,
                         .context = &rig->events},
            .results_topic = rig->broker.results,
            .dead_letters_topic = rig->broker.results,
            .transactional_id = rig->broker.group},
        .source = rig->source,
        .commit_interval_ms = 50,
        .messages_max = 1000};
    struct sink *sink = NULL;
    struct error err = {.message = ""};
    if (transaction_create(&options, &sink, &err) != ERR_OK) fail_msg("%s", err.message);
    return sink;
}

static void rig_start_with(struct rig *rig, int partitions, const struct setting *settings) {
    *rig = (struct rig){0};
    broker_start(&rig->broker, partitions);
    for (int i = 0; i < partitions; i++)
        broker_produce(&rig->broker, i, i * COUNT / partitions, COUNT / partitions);
    rig->source = consumer_start_for_transactions(&rig->broker, &rig->events, settings);
    rig->sink = open_sink(rig);
    int taken = 0;
    WAIT_DOING(taken, ==, COUNT, {
        sink_serve(rig->sink, 0); /* which commits what the source claims */
        taken += consumer_take(rig->source, &rig->positions[taken]);
    });
}

static void rig_start(struct rig *rig) {
    rig_start_with(rig, 1, NULL);
}

static void rig_stop(struct rig *rig) {
    sink_destroy(rig->sink);
    consumer_stop(rig->source);
    broker_stop(&rig->broker);
}

/* What answers the message of that index. */
static void send_answer(struct rig *rig, int index, struct slice payload) {
    rig->sent[index] = (struct sent){.record = {.payload = payload,
                                         .answers = &rig->positions[index],
                                         .is_last = true,
                                         .on_settled = sent_note}};
    sink_send(rig->sink, &rig->sent[index].record);
}

static void send_small(struct rig *rig, int index) {
    send_answer(rig, index, slice_of_text("answer"));
}

/* Serves the rig's source and sink, as a worker does; none of its messages comes again. */
static void serve(struct rig *rig) {
    struct position position;
    assert_false(consumer_take(rig->source, &position));
    sink_serve(rig->sink, 0);
}

static void wait_until_settled(struct rig *rig, int index, enum err code) {
    WAIT_DOING(rig->sent[index].settled_count, >, 0, serve(rig));
    if (rig->sent[index].code != code)
        fail_msg("%s: %s", err_code(rig->sent[index].code), rig->sent[index].err.message);
    assert_int_equal(rig->sent[index].settled_count, 1);
    if (code == ERR_OK) source_finish(rig->source, &rig->positions[index]);
}

TEST(a_record_is_settled_once_its_transaction_is_committed) {
    struct rig rig;
    rig_start(&rig);
    send_small(&rig, 1);
    send_small(&rig, 3);
    assert_int_equal(rig.sent[1].settled_count, 0);
    wait_until_settled(&rig, 1, ERR_OK);
    wait_until_settled(&rig, 3, ERR_OK);
    assert_int_equal(broker_count_results(&rig.broker), 2);
    if (kafka_is_complete()) {
        char text[4096];
        assert_int_equal(broker_committed_metadata(&rig.broker, 0, text, sizeof text), 0);
        assert_string_equal(text,
            "gpu-worker/1 offset=0 mark=open owner=0000000000000001 takeovers=0 window=0 "
            "finished=Cg==");
    }
    rig_stop(&rig);
}

static void note_committed(void *context, const char *topic, int32_t partition, int64_t next) {
    int64_t *noted = context;
    assert_int_equal(partition, 0);
    *noted = next;
}

TEST(the_source_tells_what_a_transaction_has_committed) {
    struct rig rig;
    int64_t noted = -1;
    rig_start(&rig);
    source_watch_committed(rig.source, note_committed, &noted);
    send_small(&rig, 0);
    send_small(&rig, 1);
    assert_int_equal(noted, -1);
    wait_until_settled(&rig, 0, ERR_OK);
    wait_until_settled(&rig, 1, ERR_OK);
    assert_int_equal(noted, 2);
    rig_stop(&rig);
}

TEST(offsets_alone_are_committed_where_nothing_is_unfinished) {
    struct rig rig;
    if (!kafka_is_complete()) skip();
    rig_start(&rig);
    for (int i = 0; i < COUNT; i++) send_small(&rig, i);
    for (int i = 0; i < COUNT; i++) wait_until_settled(&rig, i, ERR_OK);
    broker_produce_in_transaction(&rig.broker, 0, 1, ABORTED);
    WAIT_DOING(broker_committed(&rig.broker, 0), ==, broker_end(&rig.broker, 0), serve(&rig));
    rig_stop(&rig);
}

TEST(a_record_that_is_refused_costs_the_others_only_a_repetition) {
    struct rig rig;
    static uint8_t large[3 << 20];
    rig_start(&rig);
    send_small(&rig, 0);
    send_answer(&rig, 1, slice_of(large, sizeof large));
    send_small(&rig, 2);
    wait_until_settled(&rig, 1, ERR_PUBLISH_REFUSED);
    assert_int_equal(rig.sent[0].settled_count, 0);
    send_small(&rig, 1);
    for (int i = 0; i < 3; i++) wait_until_settled(&rig, i, ERR_OK);
    if (kafka_is_complete()) {
        assert_int_equal(broker_count_results(&rig.broker), 3);
        assert_int_equal(broker_committed(&rig.broker, 0), 3);
    }
    rig_stop(&rig);
}

TEST(a_batch_that_is_refused_is_repeated_with_fewer_messages) {
    struct rig rig;
    if (!kafka_obeys()) skip(); /* real brokers do not refuse at will */
    rig_start(&rig);
    broker_refuse(&rig.broker, REQUEST_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
    for (int i = 0; i < COUNT; i++) send_small(&rig, i);
    for (int i = 0; i < COUNT; i++) wait_until_settled(&rig, i, ERR_OK);
    rig_stop(&rig);
}

/* The first report says that the next transaction has one message, while the second is on its way.
 */
TEST(batches_of_several_messages_that_are_refused_convict_none_of_them) {
    struct rig rig;
    char other[80];
    if (!kafka_obeys() || !kafka_is_complete()) skip();
    rig_start(&rig);
    snprintf(other, sizeof other, "other-%s", rig.broker.results);
    broker_create_topic(&rig.broker, other, 1);
    broker_refuse(&rig.broker, REQUEST_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 2);
    send_small(&rig, 0);
    rig.sent[1] = (struct sent){.record = {.topic = other,
                                    .payload = slice_of_text("answer"),
                                    .answers = &rig.positions[1],
                                    .is_last = true,
                                    .on_settled = sent_note}};
    sink_send(rig.sink, &rig.sent[1].record);
    WAIT_DOING(rig.sent[0].settled_count + rig.sent[1].settled_count, ==, 2,
        sink_serve(rig.sink, 1)); /* which reads a report at a time */
    for (int i = 0; i < 2; i++) wait_until_settled(&rig, i, ERR_OK);
    rig_stop(&rig);
}

TEST(what_the_broker_refuses_alone_is_refused) {
    struct rig rig;
    if (!kafka_obeys()) skip();
    rig_start(&rig);
    broker_refuse(&rig.broker, REQUEST_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 2);
    send_small(&rig, 0);
    wait_until_settled(&rig, 0, ERR_PUBLISH_REFUSED);
    send_small(&rig, 0);
    wait_until_settled(&rig, 0, ERR_OK);
    rig_stop(&rig);
}

struct replaced {
    struct record record; /* first: on_settled gets its address */
    struct entries *waiting;
    struct entry *replacement;
};

static void replace_it(struct record *record, enum err code, const struct error *err) {
    struct replaced *replaced = (struct replaced *)record;
    entries_add(replaced->waiting, replaced->replacement);
}

static struct entry *new_entry(struct record *record) {
    struct entry *entry = calloc(1, sizeof *entry);
    assert_non_null(entry);
    entry->record = record;
    return entry;
}

/* Else a transaction could end between them, and a crash then lose what is said instead. */
TEST(what_replaces_a_refused_record_stands_before_the_last_one_of_its_message) {
    struct entries waiting;
    struct record last = {.is_last = true}, next = {.is_last = true}, instead = {.is_last = false};
    entries_init(&waiting);
    struct replaced refused = {{.on_settled = replace_it}, &waiting, new_entry(&instead)};
    entries_add(&waiting, new_entry(&last));
    entries_settle_before(&waiting, new_entry(&refused.record));
    entries_add(&waiting, new_entry(&next));
    const struct record *const expected[] = {&instead, &last, &next};
    for (int i = 0; i < 3; i++) {
        struct entry *entry = entries_take_first(&waiting);
        assert_ptr_equal(entry->record, expected[i]);
        free(entry);
    }
    assert_null(entries_take_first(&waiting));
}

TEST(records_of_messages_that_are_not_ours_any_more_are_dropped) {
    struct rig rig;
    struct error err;
    rig_start(&rig);
    send_small(&rig, 0);
    offsets_revoke(consumer_parts(rig.source).offsets, rig.broker.jobs, 0);
    wait_until_settled(&rig, 0, ERR_REVOKED);
    assert_int_equal(sink_flush(rig.sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    if (kafka_is_complete()) assert_int_equal(broker_count_results(&rig.broker), 0);
    rig_stop(&rig);
}

/* Where a sink is flushed, its caller finishes what was settled only after that. */
TEST(a_flush_takes_no_commit_back_whose_messages_are_settled_and_not_finished_yet) {
    struct rig rig;
    struct error err;
    if (!kafka_is_complete()) skip();
    rig_start(&rig);
    send_small(&rig, 0);
    WAIT_DOING(sink_flush(rig.sink, 0, &err), ==, ERR_OK, serve(&rig));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sink_flush(rig.sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
        assert_int_equal(rig.sent[0].settled_count, 1);
        assert_int_equal(broker_committed(&rig.broker, 0), 1);
        if (i == 0) source_finish(rig.source, &rig.positions[0]);
    }
    rig_stop(&rig);
}

TEST(a_producer_that_was_fenced_is_replaced_and_its_transaction_repeated) {
    struct rig rig;
    struct error err;
    if (!kafka_is_complete()) skip();
    rig_start(&rig);
    send_small(&rig, 0);
    wait_until_settled(&rig, 0, ERR_OK);
    struct sink *other = open_sink(&rig);
    assert_int_equal(sink_flush(other, KAFKA_PATIENCE_MS, &err), ERR_OK);
    send_small(&rig, 1);
    wait_until_settled(&rig, 1, ERR_OK);
    assert_int_equal(broker_count_results(&rig.broker), 2);
    sink_destroy(other);
    rig_stop(&rig);
}

/* The broker answers a request of this kind with this code twice. */
static void test_answers(enum request request, rd_kafka_resp_err_t code, int results) {
    struct rig rig;
    if (!kafka_obeys()) skip();
    rig_start(&rig);
    broker_refuse(&rig.broker, request, code, 2);
    send_small(&rig, 0);
    wait_until_settled(&rig, 0, ERR_OK);
    assert_int_equal(broker_count_results(&rig.broker), results);
    rig_stop(&rig);
}

TEST(offsets_of_a_generation_that_is_over_abort_and_repeat_the_transaction) {
    /* the embedded broker shows what was aborted: two repetitions */
    int results = kafka_is_complete() ? 1 : 3;
    test_answers(REQUEST_TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, results);
}

TEST(a_coordinator_that_is_loading_is_asked_again) {
    test_answers(REQUEST_TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 1);
    test_answers(REQUEST_END_TXN, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 1);
}

TEST(a_producer_that_is_fenced_again_before_it_has_committed_is_lost) {
    struct rig rig;
    if (!kafka_obeys()) skip();
    rig_start(&rig);
    broker_refuse(&rig.broker, REQUEST_END_TXN, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, 2);
    send_small(&rig, 0);
    wait_until_settled(&rig, 0, ERR_BROKER);
    assert_non_null(strstr(rig.sent[0].err.message, "another worker has this one's name"));
    send_small(&rig, 1);
    wait_until_settled(&rig, 1, ERR_BROKER);
    rig_stop(&rig);
}

/* With messages in hand, and perhaps while members join: the last commit may fail. */
static void leave(struct source *source) {
    struct error err;
    (void)!source_close(source, KAFKA_PATIENCE_MS, &err);
    source_destroy(source);
}

/* So that giving them back waits for them. */
static void start_all(struct rig *rig) {
    for (int i = 0; i < COUNT; i++) assert_true(source_start(rig->source, &rig->positions[i]));
}

static bool is_leaving(const struct rig *rig) {
    return strstr(rig->events.last_fact, "revoking ") != NULL;
}

/* Another member, which gets nothing yet. */
static void serve_beside(struct rig *rig, struct source *other) {
    struct position position;
    serve(rig);
    assert_false(consumer_take(other, &position));
}

static bool is_member(const struct rig *rig, const char *id) {
    char *now = rd_kafka_memberid(consumer_parts(rig->source).client);
    bool ret = now != NULL && strcmp(now, id) == 0;
    free(now);
    return ret;
}

TEST(a_member_that_is_outside_its_group_while_it_gives_partitions_back_commits_nothing) {
    struct rig rig;
    struct events events = {0};
    if (!kafka_obeys()) skip(); /* real brokers do not refuse at will */
    rig_start_with(&rig, 2, kafka_short_session);
    start_all(&rig);
    char *id = rd_kafka_memberid(consumer_parts(rig.source).client);
    struct source *second = consumer_start(&rig.broker, &events, kafka_short_session);
    WAIT_DOING(is_leaving(&rig), ==, true, serve_beside(&rig, second));
    /* the second may get some of them */
    broker_refuse(&rig.broker, REQUEST_HEARTBEAT, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, 8);
    WAIT_DOING(is_member(&rig, id), ==, false, serve(&rig));
    for (int i = 0; i < COUNT; i++) send_small(&rig, i);
    for (int i = 0; i < COUNT; i++) {
        WAIT_DOING(rig.sent[i].settled_count, >, 0, serve(&rig));
        wait_until_settled(&rig, i, ERR_REVOKED);
    }
    free(id);
    leave(second);
    sink_destroy(rig.sink);
    leave(rig.source);
    broker_stop(&rig.broker);
}

enum { OTHERS_MAX = 2, MOVES_ONE_BY_ONE = 0x020a0000 /* the version, see consumer_conf.c */ };

#define SHORT_PATIENCE                                                                             \
    {"session.timeout.ms", "6000"}, {                                                              \
        "max.poll.interval.ms", "6000"                                                             \
    }

static const struct setting dynamic[] = {SHORT_PATIENCE, {NULL, NULL}};
static const struct setting *const dynamic_ones[] = {dynamic, dynamic, dynamic};

static const struct setting one[] = {SHORT_PATIENCE, {"group.instance.id", "one"}, {NULL, NULL}};
static const struct setting two[] = {SHORT_PATIENCE, {"group.instance.id", "two"}, {NULL, NULL}};
static const struct setting three[] = {
    SHORT_PATIENCE, {"group.instance.id", "three"}, {NULL, NULL}};
static const struct setting *const static_ones[] = {one, two, three};

/* Answers all. The rig has lost those of `partition`, or all if it is -1. */
static void answer_late(struct rig *rig, int32_t partition) {
    struct position again;
    for (int i = 0; i < COUNT; i++) send_small(rig, i);
    for (int i = 0; i < COUNT; i++) {
        WAIT_DOING(rig->sent[i].settled_count, >, 0, {
            (void)consumer_take(rig->source, &again);
            sink_serve(rig->sink, 0);
        });
        if (partition == -1 || rig->positions[i].partition == partition)
            assert_int_equal(rig->sent[i].code, ERR_REVOKED);
    }
}

/* The group goes on without a member that takes long to give partitions back. Where it moves them
 * one by one, it waits for that member only when others join. */
static void test_left_behind(const struct setting *const settings[], int other_count) {
    struct rig rig;
    struct events events[OTHERS_MAX] = {{0}};
    struct source *others[OTHERS_MAX];
    struct position taken;
    if (!kafka_is_complete()) skip();
    rig_start_with(&rig, 2, settings[0]);
    if (other_count == 1 && rd_kafka_version() >= MOVES_ONE_BY_ONE) { /* known once it has begun */
        rig_stop(&rig);
        skip();
    }
    start_all(&rig);
    others[0] = consumer_start(&rig.broker, &events[0], settings[1]);
    WAIT_DOING(is_leaving(&rig), ==, true, serve_beside(&rig, others[0]));
    for (int i = 1; i < other_count; i++)
        others[i] = consumer_start(&rig.broker, &events[i], settings[i + 1]);
    bool has_taken = false;
    WAIT_DOING(has_taken, ==, true, {
        serve(&rig);
        for (int i = 0; i < other_count; i++)
            has_taken = has_taken || consumer_take(others[i], &taken);
    });
    answer_late(&rig, taken.partition);
    for (int i = 0; i < other_count; i++) leave(others[i]);
    rig_stop(&rig);
}

/* The consumer has nobody beside it, and is not polled for longer than the group waits. */
static void test_left_alone(const struct setting *settings) {
    struct rig rig;
    if (kafka_obeys()) skip(); /* the client of a world does nothing while nobody polls it */
    rig_start_with(&rig, 2, settings);
    start_all(&rig);
    rd_kafka_t *client = consumer_parts(rig.source).client;
    WAIT_DOING(rd_kafka_assignment_lost(client), ==, true, sink_serve(rig.sink, KAFKA_POLL_MS));
    answer_late(&rig, -1);
    sink_destroy(rig.sink);
    leave(rig.source);
    broker_stop(&rig.broker);
}

TEST(a_member_alone_that_its_group_has_given_up_commits_nothing_of_what_it_had) {
    test_left_alone(dynamic);
}

TEST(nor_does_a_static_member_alone) {
    test_left_alone(one);
}

TEST(what_the_other_member_has_got_meanwhile_is_not_answered) {
    test_left_behind(dynamic_ones, 1);
}

TEST(nor_what_the_other_static_member_has_got) {
    test_left_behind(static_ones, 1);
}

TEST(what_another_member_of_several_has_got_meanwhile_is_not_answered) {
    test_left_behind(dynamic_ones, 2);
}

TEST(nor_is_it_by_a_static_member) {
    test_left_behind(static_ones, 2);
}

TEST(a_sink_without_brokers_gives_up_in_time_and_settles_all) {
    struct rig rig;
    struct error err;
    if (!kafka_obeys()) skip();
    rig_start(&rig);
    broker_go_down(&rig.broker);
    send_small(&rig, 0);
    assert_int_equal(sink_flush(rig.sink, 500, &err), ERR_TIMEOUT);
    sink_destroy(rig.sink);
    assert_int_equal(rig.sent[0].settled_count, 1);
    assert_int_equal(rig.sent[0].code, ERR_BROKER);
    source_destroy(rig.source);
    broker_stop(&rig.broker);
}

RUN_TESTS_AT_ONCE(T(a_record_is_settled_once_its_transaction_is_committed),
    T(the_source_tells_what_a_transaction_has_committed),
    T(offsets_alone_are_committed_where_nothing_is_unfinished),
    T(a_record_that_is_refused_costs_the_others_only_a_repetition),
    T(a_batch_that_is_refused_is_repeated_with_fewer_messages),
    T(batches_of_several_messages_that_are_refused_convict_none_of_them),
    T(what_the_broker_refuses_alone_is_refused),
    T(what_replaces_a_refused_record_stands_before_the_last_one_of_its_message),
    T(records_of_messages_that_are_not_ours_any_more_are_dropped),
    T(a_flush_takes_no_commit_back_whose_messages_are_settled_and_not_finished_yet),
    T(a_producer_that_was_fenced_is_replaced_and_its_transaction_repeated),
    T(a_producer_that_is_fenced_again_before_it_has_committed_is_lost),
    T(offsets_of_a_generation_that_is_over_abort_and_repeat_the_transaction),
    T(a_member_that_is_outside_its_group_while_it_gives_partitions_back_commits_nothing),
    T(a_member_alone_that_its_group_has_given_up_commits_nothing_of_what_it_had),
    T(nor_does_a_static_member_alone), T(what_the_other_member_has_got_meanwhile_is_not_answered),
    T(nor_what_the_other_static_member_has_got),
    T(what_another_member_of_several_has_got_meanwhile_is_not_answered),
    T(nor_is_it_by_a_static_member), T(a_coordinator_that_is_loading_is_asked_again),
    T(a_sink_without_brokers_gives_up_in_time_and_settles_all))

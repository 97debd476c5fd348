/* Members that leave while their group still hands out partitions: what librdkafka makes of it. */
#include <unistd.h>

#include "broker/clients.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

enum { FETCHES_MAX = 4096, LEAVE_TIMEOUT_MS = KAFKA_PATIENCE_MS / 4 };

static bool is_member(rd_kafka_t *client) {
    char *member = rd_kafka_memberid(client);
    bool is = member != NULL && member[0] != 0;
    if (member != NULL) rd_kafka_mem_free(client, member);
    return is;
}

/* Until its assignment waits to be taken: what comes after it has joined. Nobody polls meanwhile.
 */
static void wait_for_an_assignment(struct source *source) {
    rd_kafka_t *client = consumer_parts(source).client;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
    struct wait wait = wait_begin();
    size_t length_before = 0;
    while (!is_member(client) || rd_kafka_queue_length(queue) <= length_before) {
        if (!is_member(client)) length_before = rd_kafka_queue_length(queue);
        if (!wait_goes_on(&wait)) fail_msg("%s", "no assignment waits to be taken");
        wait_pause(&wait);
    }
    rd_kafka_queue_destroy(queue);
}

TEST(a_member_that_is_given_partitions_while_it_leaves_still_leaves) {
    struct broker broker;
    struct events events = {0};
    struct error err = {.message = ""};
    broker_start(&broker, 1);
    /* nobody is told what is committed: somebody's transaction is open, and stays so */
    broker_refuse(
        &broker, REQUEST_OFFSET_FETCH, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT, FETCHES_MAX);
    struct source *source = consumer_start(&broker, &events, NULL);
    wait_for_an_assignment(source);
    assert_int_equal(source_close(source, LEAVE_TIMEOUT_MS, &err), ERR_OK);
    assert_true(rd_kafka_consumer_closed(consumer_parts(source).client));
    source_destroy(source);
    broker_stop(&broker);
}

static int count_assigned(struct source *source) {
    rd_kafka_topic_partition_list_t *list;
    assert_int_equal(rd_kafka_assignment(consumer_parts(source).client, &list), 0);
    int count = list->cnt;
    rd_kafka_topic_partition_list_destroy(list);
    return count;
}

/* Before 2.10 librdkafka never ends a client whose partitions went and came back. */
TEST(a_client_that_missed_its_topic_for_a_while_holds_up_no_end) {
#ifdef __SANITIZE_THREAD__
    skip(); /* a thread that is never joined is a leak to it */
#endif
    const struct setting soon[] = {
        {"topic.metadata.refresh.interval.ms", "300"}, kafka_short_session[0], {NULL, NULL}};
    struct broker broker;
    struct events events = {0};
    struct position position;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, soon);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    broker_hide_topic(&broker, broker.jobs, true);
    WAIT_DOING(count_assigned(source), ==, 0, (void)consumer_take(source, &position));
    broker_hide_topic(&broker, broker.jobs, false);
    broker_produce(&broker, 0, 1, 1);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    alarm(WAIT_LIMIT_MS / 1000);
    consumer_stop(source);
    alarm(0);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(a_client_that_missed_its_topic_for_a_while_holds_up_no_end),
    T(a_member_that_is_given_partitions_while_it_leaves_still_leaves))

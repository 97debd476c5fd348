#include "broker/orphans.h"

#include "broker/kafka_harness.h"
#include "support/wait.h"
#include "testing.h"

enum { BROKERS = 3, COORDINATOR = 2, SLOW_MS = 4000 };

static rd_kafka_t *member_of(const char *group, const char *bootstrap) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, why, sizeof why);
    rd_kafka_conf_set(conf, "group.id", group, why, sizeof why);
    rd_kafka_conf_set(conf, "group.instance.id", "name", why, sizeof why);
    return rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
}

/* As one that is frozen for a while. What librdkafka's admin interface would ask it for ended the
 * process some seconds later. */
TEST(a_coordinator_that_is_slow_ends_nobody_and_is_asked_again) {
    struct events events = {0};
    const struct client_events told = {.on_event = events_note, .context = &events, .name = "test"};
    struct orphans orphans;
    rd_kafka_t *owner = kafka_client(RD_KAFKA_PRODUCER, "", NULL, NULL);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(owner, BROKERS);
    rd_kafka_mock_coordinator_set(cluster, "group", "group", COORDINATOR);
    rd_kafka_mock_broker_set_rtt(cluster, COORDINATOR, SLOW_MS);
    rd_kafka_t *member = member_of("group", rd_kafka_mock_cluster_bootstraps(cluster));
    orphans_init(&orphans, member, &told, 0);
    orphans_begin(&orphans);
    WAIT_DOING(orphans.looks, ==, 2, {
        assert_false(orphans_serve(&orphans));
        rd_kafka_poll(member, KAFKA_POLL_MS);
    });
    orphans_fini(&orphans);
    rd_kafka_destroy(member);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(owner);
}

RUN_TESTS(T(a_coordinator_that_is_slow_ends_nobody_and_is_asked_again))

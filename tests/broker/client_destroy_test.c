/* The end of a client that librdkafka cannot destroy, as 2.0.2 after a topic was deleted. */
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "broker/client.h"
#include "testing.h"

static bool hangs;
static atomic_int destroyed;

void __wrap_rd_kafka_destroy_flags(rd_kafka_t *client, int flags);

void __wrap_rd_kafka_destroy_flags(rd_kafka_t *client, int flags) {
    assert_int_equal(flags, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    assert_non_null(client);
    while (hangs) pause();
    destroyed++;
}

TEST(a_client_is_destroyed_before_the_call_returns) {
    client_destroy((rd_kafka_t *)&destroyed);
    assert_int_equal(destroyed, 1);
    client_destroy(NULL);
    assert_int_equal(destroyed, 1);
}

TEST(a_client_that_cannot_be_destroyed_is_left) {
    hangs = true;
    client_destroy((rd_kafka_t *)&destroyed);
    assert_int_equal(destroyed, 1);
}

RUN_TESTS(
    T(a_client_is_destroyed_before_the_call_returns), T(a_client_that_cannot_be_destroyed_is_left))

#include "broker/spread.h"

#include <stdbool.h>
#include <string.h>

#include "testing.h"

#define MS 1000000ull

/* Partitions that have no leader. */
static bool is_away[8];

static int is_available(const rd_kafka_topic_t *topic, int32_t partition) {
    return !is_away[partition];
}

static int is_always_available(const rd_kafka_topic_t *topic, int32_t partition) {
    return true;
}

static int32_t choose(struct spread *spread, uint64_t now_ns, int32_t count) {
    return spread_choose(spread, now_ns, NULL, count, is_available);
}

TEST(records_of_a_turn_go_to_one_partition_and_those_of_the_next_turn_to_another) {
    struct spread spread;
    spread_init(&spread);
    int32_t first = choose(&spread, 10 * MS, 4);
    assert_int_equal(choose(&spread, 10 * MS + MS * SPREAD_TURN_MS - 1, 4), first);
    int32_t second = choose(&spread, 11 * MS, 4);
    assert_int_not_equal(second, first);
    assert_int_equal(choose(&spread, 11 * MS, 4), second);
    spread_fini(&spread);
}

TEST(all_partitions_have_their_turn) {
    struct spread spread;
    int counts[4] = {0};
    spread_init(&spread);
    for (unsigned i = 0; i < 400; i++) {
        int32_t partition = choose(&spread, i * MS, 4);
        counts[partition]++;
        spread_settle(&spread, partition);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(counts[i], 100);
    spread_fini(&spread);
}

TEST(a_turn_goes_to_the_partition_with_the_fewest_records_that_are_not_settled) {
    struct spread spread;
    int32_t given[3];
    spread_init(&spread);
    for (unsigned i = 0; i < 3; i++) given[i] = choose(&spread, i * MS, 3);
    spread_settle(&spread, given[1]);
    assert_int_equal(choose(&spread, 3 * MS, 3), given[1]);
    spread_settle(&spread, given[2]);
    assert_int_equal(choose(&spread, 4 * MS, 3), given[2]);
    spread_fini(&spread);
}

TEST(a_partition_without_a_leader_has_no_turn) {
    struct spread spread;
    spread_init(&spread);
    is_away[0] = is_away[2] = true;
    for (unsigned i = 0; i < 100; i++) assert_int_equal(choose(&spread, i * MS, 4) % 2, 1);
    memset(is_away, true, sizeof is_away);
    for (unsigned i = 100; i < 110; i++) assert_in_range(choose(&spread, i * MS, 4), 0, 3);
    memset(is_away, false, sizeof is_away);
    spread_fini(&spread);
}

TEST(a_topic_with_fewer_partitions_has_one_of_its_own) {
    struct spread spread;
    spread_init(&spread);
    for (unsigned i = 0; i < 8; i++) choose(&spread, i * MS, 8);
    assert_int_equal(choose(&spread, 7 * MS, 1), 0);
    assert_int_equal(choose(&spread, 8 * MS, 1), 0);
    spread_fini(&spread);
}

TEST(partitions_beyond_those_that_are_counted_apart_are_chosen_too) {
    enum { COUNT = 3 * SPREAD_PARTITIONS };
    static bool was_chosen[COUNT];
    struct spread spread;
    int chosen = 0;
    spread_init(&spread);
    for (unsigned i = 0; i < COUNT; i++) {
        int32_t partition = spread_choose(&spread, i * MS, NULL, COUNT, is_always_available);
        chosen += !was_chosen[partition];
        was_chosen[partition] = true;
        spread_settle(&spread, partition);
    }
    assert_int_equal(chosen, COUNT);
    spread_fini(&spread);
}

RUN_TESTS(T(records_of_a_turn_go_to_one_partition_and_those_of_the_next_turn_to_another),
    T(all_partitions_have_their_turn),
    T(a_turn_goes_to_the_partition_with_the_fewest_records_that_are_not_settled),
    T(a_partition_without_a_leader_has_no_turn),
    T(a_topic_with_fewer_partitions_has_one_of_its_own),
    T(partitions_beyond_those_that_are_counted_apart_are_chosen_too))

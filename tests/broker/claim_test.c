/* A claim passes from the consumer to a transaction, and its answer back. */
#include "broker/claim.h"

#include <stdio.h>
#include <stdlib.h>

#include "testing.h"

/* A membership of a group without a broker. */
static rd_kafka_consumer_group_metadata_t *member(void) {
    return rd_kafka_consumer_group_metadata_new("group");
}

static int set_up(void **state) {
    return (*state = claim_create()) != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    claim_destroy(*state);
    return 0;
}

static bool ask(struct claim *claim, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "jobs", 0)->offset = offset;
    bool is_asked = claim_ask(claim, list, member());
    rd_kafka_topic_partition_list_destroy(list);
    return is_asked;
}

/* The offset that a transaction takes; -1: nothing. */
static int64_t take(struct claim *claim) {
    rd_kafka_consumer_group_metadata_t *group;
    rd_kafka_topic_partition_list_t *list = claim_take(claim, &group);
    if (list == NULL) {
        assert_null(group);
        return -1;
    }
    int64_t offset = list->elems[0].offset;
    assert_non_null(group);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(group);
    return offset;
}

TEST(it_is_taken_once_and_answered_once) {
    struct claim *claim = *state;
    rd_kafka_resp_err_t code;
    assert_false(claim_get_answer(claim, &code));
    assert_true(ask(claim, 7));
    assert_true(claim_is_asked(claim));
    assert_true(claim_get_answer(claim, &code));
    assert_int_equal(code, RD_KAFKA_RESP_ERR__IN_PROGRESS);
    assert_int_equal(take(claim), 7);
    assert_int_equal(take(claim), -1);
    assert_false(claim_is_asked(claim));
    claim_answer(claim, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    assert_true(claim_get_answer(claim, &code));
    assert_int_equal(code, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    assert_false(claim_get_answer(claim, &code));
}

TEST(one_that_is_withdrawn_is_not_taken) {
    struct claim *claim = *state;
    assert_true(ask(claim, 7));
    claim_withdraw(claim);
    assert_int_equal(take(claim), -1);
    assert_true(ask(claim, 8));
    assert_int_equal(take(claim), 8);
}

TEST(the_answer_to_one_that_was_withdrawn_is_not_the_next_ones) {
    struct claim *claim = *state;
    rd_kafka_resp_err_t code;
    assert_true(ask(claim, 7));
    assert_int_equal(take(claim), 7);
    claim_withdraw(claim);
    assert_false(ask(claim, 8)); /* it is still on its way */
    assert_false(claim_get_answer(claim, &code));
    claim_answer(claim, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_false(claim_get_answer(claim, &code));
    assert_true(ask(claim, 9));
    claim_answer(claim, RD_KAFKA_RESP_ERR_NO_ERROR); /* of none that was taken */
    assert_int_equal(take(claim), 9);
}

TEST(an_answer_that_nobody_took_is_gone_with_its_claim) {
    struct claim *claim = *state;
    rd_kafka_resp_err_t code;
    assert_true(ask(claim, 7));
    assert_int_equal(take(claim), 7);
    claim_answer(claim, RD_KAFKA_RESP_ERR_NO_ERROR);
    claim_withdraw(claim);
    assert_false(claim_get_answer(claim, &code));
    assert_true(ask(claim, 8));
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(it_is_taken_once_and_answered_once),
        F(one_that_is_withdrawn_is_not_taken),
        F(the_answer_to_one_that_was_withdrawn_is_not_the_next_ones),
        F(an_answer_that_nobody_took_is_gone_with_its_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "broker/resends.h"

#include <string.h>

#include "testing.h"

enum { COUNT = 100, NOBODY = -1 };

static struct record records[COUNT];

/* Whether the broker refuses a group: it takes so many at once, and none with the bad one. */
static bool refuses(struct record *const *group, size_t size, size_t fits, int bad) {
    bool is_refused = size > fits;
    for (size_t i = 0; i < size; i++) is_refused = is_refused || group[i] - records == bad;
    return is_refused;
}

/* Notes which of the records were taken. Returns how many groups that took. */
static int resend(size_t fits, int bad, bool is_taken[static COUNT]) {
    struct resends resends = {0};
    int groups = 0;
    for (size_t i = 0; i < COUNT; i++) assert_true(resends_add(&resends, &records[i]));
    for (; resends_are_any(&resends); groups++) {
        struct record *sent[COUNT + 1];
        size_t size = 0;
        while ((sent[size] = resends_next(&resends)) != NULL) size++;
        bool is_refused = refuses(sent, size, fits, bad);
        for (size_t i = 0; i < size; i++)
            if (resends_report(&resends, sent[i], is_refused))
                is_taken[sent[i] - records] = !is_refused;
    }
    resends_fini(&resends);
    return groups;
}

TEST(what_was_refused_for_the_size_of_its_batch_is_taken_in_smaller_ones) {
    bool is_taken[COUNT] = {false};
    assert_in_range(resend(9, NOBODY, is_taken), COUNT / 9, 40);
    for (int i = 0; i < COUNT; i++) assert_true(is_taken[i]);
}

TEST(the_one_that_is_refused_alone_is_to_blame) {
    bool is_taken[COUNT] = {false};
    assert_in_range(resend(COUNT, 70, is_taken), 1, 30);
    for (int i = 0; i < COUNT; i++) assert_int_equal(is_taken[i], i != 70);
}

TEST(what_is_sent_meanwhile_joins_the_groups) {
    struct resends resends = {0};
    for (size_t i = 0; i < 4; i++) assert_true(resends_add(&resends, &records[i]));
    assert_ptr_equal(resends_next(&resends), &records[0]);
    assert_ptr_equal(resends_next(&resends), &records[1]);
    assert_true(resends_add(&resends, &records[4]));
    assert_true(resends_report(&resends, &records[1], false));
    assert_null(resends_next(&resends)); /* one group at a time */
    assert_true(resends_report(&resends, &records[0], false));
    for (int i = 2; i < 5; i++) assert_ptr_equal(resends_next(&resends), &records[i]);
    assert_null(resends_take_waiting(&resends));
    assert_true(resends_add(&resends, &records[5]));
    assert_ptr_equal(resends_take_waiting(&resends), &records[5]);
    resends_fini(&resends);
}

RUN_TESTS(T(what_was_refused_for_the_size_of_its_batch_is_taken_in_smaller_ones),
    T(the_one_that_is_refused_alone_is_to_blame), T(what_is_sent_meanwhile_joins_the_groups))

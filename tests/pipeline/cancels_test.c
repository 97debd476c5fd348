#include "pipeline/cancels.h"

#include <stdio.h>

#include "testing.h"

enum { IDS_MAX = 100, TTL_MS = 1000 };

static int set_up(void **state) {
    *state = cancels_create(IDS_MAX, TTL_MS);
    return *state != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    cancels_destroy(*state);
    return 0;
}

/* Returns whether another had to give way. */
static bool add(struct cancels *cancels, const char *id, uint64_t at_ms, uint64_t now_ms) {
    struct error err;
    bool forgot;
    const struct control_message message = {slice_of_text(id), CONTROL_CANCEL};
    assert_int_equal(cancels_add(cancels, &message, at_ms, now_ms, &forgot, &err), ERR_OK);
    return forgot;
}

static bool has(struct cancels *cancels, const char *id, uint64_t now_ms) {
    return cancels_find(cancels, slice_of_text(id), now_ms) == CONTROL_CANCEL;
}

TEST(an_id_is_known_for_its_time_to_live) {
    struct cancels *cancels = *state;
    assert_false(has(cancels, "a", 0));
    add(cancels, "a", 5000, 5000);
    assert_true(has(cancels, "a", 5000));
    assert_true(has(cancels, "a", 5999));
    assert_false(has(cancels, "a", 6000));
    assert_false(has(cancels, "b", 5000));
    assert_false(has(cancels, "", 5000));
}

TEST(what_was_cancelled_long_ago_is_not_kept) {
    struct cancels *cancels = *state;
    add(cancels, "a", 1000, 2000);
    assert_int_equal(cancels_count(cancels), 0);
    add(cancels, "b", 1001, 2000);
    assert_true(has(cancels, "b", 2000));
    assert_false(has(cancels, "b", 2001));
}

TEST(cancelled_again_it_lives_longer_and_is_kept_once) {
    struct cancels *cancels = *state;
    add(cancels, "a", 0, 0);
    add(cancels, "a", 500, 500);
    add(cancels, "a", 200, 500); /* an older message that comes later */
    assert_int_equal(cancels_count(cancels), 1);
    assert_true(has(cancels, "a", 1499));
    assert_false(has(cancels, "a", 1500));
}

TEST(a_full_set_forgets_the_oldest) {
    struct cancels *cancels = *state;
    char id[16];
    for (int i = 0; i < 3 * IDS_MAX; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        assert_int_equal(add(cancels, id, 10, 10), i >= IDS_MAX);
    }
    assert_int_equal(cancels_count(cancels), IDS_MAX);
    for (int i = 0; i < 3 * IDS_MAX; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        assert_int_equal(has(cancels, id, 10), i >= 2 * IDS_MAX);
    }
}

TEST(what_has_expired_makes_room) {
    struct cancels *cancels = *state;
    char id[16];
    for (int i = 0; i < IDS_MAX; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        add(cancels, id, 0, 0);
    }
    assert_false(add(cancels, "new", TTL_MS, TTL_MS));
    assert_int_equal(cancels_count(cancels), 1);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(an_id_is_known_for_its_time_to_live),
        F(what_was_cancelled_long_ago_is_not_kept),
        F(cancelled_again_it_lives_longer_and_is_kept_once),
        F(a_full_set_forgets_the_oldest),
        F(what_has_expired_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

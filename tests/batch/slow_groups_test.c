/* Proves: a group is found however many there are, groups take turns, and who shares one. */
#include "batch/slow_groups.h"

#include "plan/plan.h"
#include "testing.h"

enum { JOBS_MAX = 8192, MANY = 4000, TENANTS = 3, A = 100, B = 200 };

static const struct composition_limits limits = {.slab_bytes = 1 << 20};
static struct slow_groups groups;
static struct job jobs[JOBS_MAX];
static struct plan plans[JOBS_MAX];
static size_t used;

static int set_up(void **state) {
    groups = (struct slow_groups){0};
    used = 0;
    return 0;
}

static int tear_down(void **state) {
    while (slow_groups_pop(&groups) != NULL) continue;
    slow_groups_fini(&groups);
    return 0;
}

static struct job *add(uint64_t signature, const char *tenant, uint32_t retry_count) {
    assert_true(used < JOBS_MAX);
    struct job *job = &jobs[used];
    plans[used] = (struct plan){.signature = signature, .job = job};
    *job = (struct job){.plan = &plans[used++], .retry_count = retry_count};
    job->tenant = slice_of_text(tenant);
    slow_groups_add(&groups, job);
    return job;
}

static size_t take(struct job *group, size_t most, struct job **ret) {
    return slow_groups_take(&groups, group, &limits, most, ret);
}

TEST(a_job_finds_its_group_however_many_there_are) {
    struct job *taken[4], *first[MANY];
    for (uint64_t i = 0; i < MANY; i++) first[i] = add(1 + i, "", 0);
    for (uint64_t i = 0; i < MANY; i++) {
        struct job *second = add(1 + i, "", 0);
        assert_ptr_equal(slow_groups_find(&groups, 1 + i, NULL), first[i]);
        assert_int_equal(take(first[i], 4, taken), 2);
        assert_ptr_equal(taken[0], first[i]);
        assert_ptr_equal(taken[1], second);
        assert_null(slow_groups_find(&groups, 1 + i, NULL));
    }
    assert_null(slow_groups_next(&groups, NULL));
}

TEST(groups_take_turns_and_what_is_left_of_one_stands_last) {
    struct job *taken[4], *a[3];
    for (int i = 0; i < 3; i++) a[i] = add(A, "", 0);
    struct job *b = add(B, "", 0);
    assert_int_equal(take(a[0], 1, taken), 1);
    assert_ptr_equal(slow_groups_next(&groups, NULL), b);
    assert_ptr_equal(slow_groups_next(&groups, b), a[1]);
    assert_null(slow_groups_next(&groups, a[1]));
    assert_ptr_equal(slow_groups_find(&groups, A, NULL), a[1]);
    (void)add(A, "", 0);
    assert_int_equal(take(a[1], 4, taken), 3);
}

TEST(each_tenant_has_a_group_and_all_are_found) {
    static const char *const tenants[TENANTS] = {"one", "two", "three"};
    struct job *taken[4];
    size_t found = 0;
    for (int i = 0; i < 2 * TENANTS; i++) (void)add(A, tenants[i % TENANTS], 0);
    struct job *group = NULL;
    while ((group = slow_groups_find(&groups, A, group)) != NULL) found++;
    assert_int_equal(found, TENANTS);
    while ((group = slow_groups_next(&groups, NULL)) != NULL) {
        assert_int_equal(take(group, 4, taken), 2);
        assert_true(slice_equal(taken[0]->tenant, taken[1]->tenant));
    }
}

TEST(a_job_that_failed_before_has_its_turn_but_no_group_that_is_found) {
    struct job *taken[4], *alone = add(A, "", 1), *other = add(A, "", 0), *again = add(A, "", 1);
    assert_ptr_equal(slow_groups_next(&groups, NULL), alone);
    assert_ptr_equal(slow_groups_find(&groups, A, NULL), other);
    assert_null(slow_groups_find(&groups, A, other));
    assert_int_equal(take(alone, 4, taken), 1);
    assert_int_equal(take(other, 4, taken), 1);
    assert_ptr_equal(slow_groups_pop(&groups), again);
}

#define G(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(G(a_job_finds_its_group_however_many_there_are),
    G(groups_take_turns_and_what_is_left_of_one_stands_last),
    G(each_tenant_has_a_group_and_all_are_found),
    G(a_job_that_failed_before_has_its_turn_but_no_group_that_is_found))

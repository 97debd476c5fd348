/* Whose job it is: which jobs count as one tenant's. */
#include "prepare/tenant.h"

#include "plan/planner.h"
#include "support/jobs.h"
#include "testing.h"

static struct job *job;
static struct error err;

static int set_up(void **state) {
    job = test_job("id: j\nbuffers: {y: {bytes: 8}}\nsteps: [{program: saxpy, args: [{f32: 1}, y, "
                   "y, {u32: 1}], elements: 1}]\noutputs: []\n");
    return 0;
}

static int tear_down(void **state) {
    job_destroy(job);
    return 0;
}

static struct slice name_by_key(const char *topic, struct slice key) {
    struct slice name;
    job->delivery->position.topic = topic;
    job->delivery->key = key;
    assert_int_equal(tenant_name(ISOLATION_KEY, job, job->plan, &name, &err), ERR_OK);
    return name;
}

static bool are_same(struct slice a, struct slice b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

TEST(without_isolation_all_jobs_are_one_tenants) {
    struct slice name = slice_of_text("something");
    job->delivery->key = slice_of_text("key");
    assert_int_equal(tenant_name(ISOLATION_NONE, job, job->plan, &name, &err), ERR_OK);
    assert_int_equal(name.size, 0);
}

TEST(a_tenant_is_a_key_in_its_topic) {
    struct slice one = name_by_key("jobs", slice_of_text("a"));
    assert_true(are_same(one, name_by_key("jobs", slice_of_text("a"))));
    assert_false(are_same(one, name_by_key("jobs", slice_of_text("b"))));
    assert_false(are_same(one, name_by_key("other", slice_of_text("a"))));
    assert_false(are_same(one, name_by_key("jobsa", (struct slice){0})));
    assert_false(are_same(one, name_by_key("job", slice_of_text("sa"))));
    assert_false(are_same(one, name_by_key("jobs", slice_of_text("aa"))));
}

TEST(jobs_without_a_key_are_one_tenant_of_their_topic) {
    struct slice one = name_by_key("jobs", (struct slice){0});
    assert_true(one.size > 0); /* not that of ISOLATION_NONE */
    assert_true(are_same(one, name_by_key("jobs", (struct slice){0})));
    assert_false(are_same(one, name_by_key("other", (struct slice){0})));
}

static struct slice name_by_programs(const struct program *const *programs, size_t count) {
    struct plan_launch launches[4] = {0};
    const struct plan plan = {.launch_count = count, .launches = launches};
    struct slice name;
    for (size_t i = 0; i < count; i++) launches[i].program = programs[i];
    assert_int_equal(tenant_name(ISOLATION_PROGRAM, job, &plan, &name, &err), ERR_OK);
    return name;
}

TEST(a_tenant_is_the_programs_of_the_steps_in_their_order) {
    const struct program *a = (const struct program *)&job, *b = (const struct program *)&err;
    struct slice ab = name_by_programs((const struct program *const[]){a, b}, 2);
    assert_true(are_same(ab, name_by_programs((const struct program *const[]){a, a, b, b}, 4)));
    assert_false(are_same(ab, name_by_programs((const struct program *const[]){b, a}, 2)));
    assert_false(are_same(ab, name_by_programs((const struct program *const[]){a, b, a}, 3)));
    assert_false(are_same(ab, name_by_programs((const struct program *const[]){a}, 1)));
    assert_true(are_same(name_by_programs((const struct program *const[]){a, a}, 2),
        name_by_programs((const struct program *const[]){a}, 1)));
}

TEST(a_job_whose_arena_is_full_cannot_be_named) {
    struct slice name;
    job->arena.reserved_max = job->arena.reserved;
    while (arena_alloc(&job->arena, 1, 1) != NULL) continue;
    assert_int_equal(tenant_name(ISOLATION_KEY, job, job->plan, &name, &err), ERR_NO_MEMORY);
    struct plan_launch launch = {0};
    const struct plan plan = {.launch_count = 1, .launches = &launch};
    assert_int_equal(tenant_name(ISOLATION_PROGRAM, job, &plan, &name, &err), ERR_NO_MEMORY);
}

#define J(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(J(without_isolation_all_jobs_are_one_tenants), J(a_tenant_is_a_key_in_its_topic),
    J(jobs_without_a_key_are_one_tenant_of_their_topic),
    J(a_tenant_is_the_programs_of_the_steps_in_their_order),
    J(a_job_whose_arena_is_full_cannot_be_named))

/* Proves: cooperative launches. */
#include "prepare/kernels.h"

#include <stdio.h>

#include "gpu/cpu_device.h"
#include "plan/planner.h"
#include "support/jobs.h"

static struct registry *registry;
static struct device device;
static struct modules *modules;
static struct module_set *set;
static struct job *job;
static struct job_kernel launches[1];
static struct error err;

static int set_up(void **state) {
    struct problems problems;
    problems_init(&problems);
    registry = registry_load(MIX_FOLDER, &problems);
    assert_int_equal(problems.count, 0);
    problems_fini(&problems);
    cpu_device_open(&device, NULL);
    assert_int_equal(modules_create(&device, MODULES_MAX, &modules, &err), ERR_OK);
    assert_int_equal(module_set_load(modules, registry, NULL, &set, &err), ERR_OK);
    return 0;
}

static int tear_down(void **state) {
    kernels_release(job);
    job_destroy(job);
    module_set_unload(set);
    modules_destroy(modules);
    device_close(&device);
    registry_destroy(registry);
    return cpu_device_reset(state);
}

/* Plans and prepares one step. */
static enum err prepare_step(const char *step) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {y: {bytes: 4096}, s: {bytes: 4096}, w: {bytes: 4}}\n"
        "steps: [{program: mix, %s}]\noutputs: []\n",
        step);
    job = test_job(yaml);
    const struct plan_limits limits = {
        .device = device.limits, .job_bytes_max = 1 << 20, .result_bytes_max = 1 << 20};
    const struct plan *plan;
    enum err code = plan_job(job, registry, &limits, &plan, &err);
    if (code != ERR_OK) fail_msg("%s", err.message);
    job->plan = plan;
    job->modules = set;
    job->kernels = launches;
    launches[0] = (struct job_kernel){0};
    return kernels_load(&device, job, &err);
}

#define TURN "entry: turn, args: [y, s, w, {u32: 1024}]"

TEST(a_cooperative_grid_that_fits_is_launched_whole) {
    assert_int_equal(prepare_step(TURN ", grid: [4]"), ERR_OK);
    assert_false(launches[0].is_in_phases);
}

TEST(a_cooperative_grid_that_does_not_fit_goes_in_phases) {
    assert_int_equal(prepare_step(TURN ", grid: [1000000]"), ERR_OK);
    assert_true(launches[0].is_in_phases);
    assert_non_null(launches[0].kernel->phases[0]->function);
    assert_non_null(launches[0].kernel->phases[1]->function);
}

#define EIGHT_FIT                                                                                  \
    "entry: xor_shift, args: [y, {u32: 1}], cooperative: true, block: [512], shared_bytes: 1000"

TEST(a_cooperative_grid_fits_to_the_last_block) {
    assert_int_equal(prepare_step(EIGHT_FIT ", grid: [2, 4]"), ERR_OK);
    assert_false(launches[0].is_in_phases);
    kernels_release(job);
    job_destroy(job);
    assert_int_equal(prepare_step(EIGHT_FIT ", grid: [3, 3]"), ERR_BAD_LAUNCH);
}

TEST(a_grid_whose_blocks_wait_for_none_may_be_larger_than_what_fits) {
    assert_int_equal(
        prepare_step("entry: xor_shift, args: [y, {u32: 1}], grid: [100000, 2], block: [512]"),
        ERR_OK);
}

TEST(shared_memory_counts_for_what_fits) {
    assert_int_equal(prepare_step(TURN ", grid: [4], shared_bytes: 200000"), ERR_OK);
    assert_true(launches[0].is_in_phases);
}

TEST(a_device_without_cooperative_launches_takes_phases) {
    device.limits.cooperative = false;
    assert_int_equal(prepare_step(TURN ", grid: [4]"), ERR_OK);
    assert_true(launches[0].is_in_phases);
}

TEST(without_phases_the_error_says_what_was_asked_what_fits_and_what_to_do) {
    assert_int_equal(prepare_step(EIGHT_FIT ", grid: [100000, 2]"), ERR_BAD_LAUNCH);
    assert_string_equal(err.message,
        "'xor_shift' is launched cooperatively with 200000 blocks of 512 threads and 1000 bytes of "
        "shared memory, and the device runs 8 at once: 4 on each of 2 multiprocessors");
    assert_string_equal(
        err.fix, "use a smaller grid and let each thread do more, or give the entry `phases`");
}

#define K(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        K(a_cooperative_grid_that_fits_is_launched_whole),
        K(a_cooperative_grid_that_does_not_fit_goes_in_phases),
        K(a_cooperative_grid_fits_to_the_last_block),
        K(a_grid_whose_blocks_wait_for_none_may_be_larger_than_what_fits),
        K(shared_memory_counts_for_what_fits),
        K(a_device_without_cooperative_launches_takes_phases),
        K(without_phases_the_error_says_what_was_asked_what_fits_and_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A lane that is lent to the thread that pushes a job. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/lane.h"
#include "batch_rig.h"
#include "support/wait.h"

static struct ready *ready;
static struct lanes *lanes;
static struct tenancy *tenancy;
static struct job *job;

/* What became of the job. */
static bool is_refused;      /* set before */
static pthread_t started_by; /* written before it ends */
static atomic_int done, refused, released, lost;
static enum err outcome;
static float output[2];

static void admit(void *ignored, size_t count) {
    fail_msg("no message was offered");
}

static enum err start(void *ignored, struct job *started, struct error *ret) {
    assert_ptr_equal(started, job);
    started_by = pthread_self();
    return is_refused ? error_set(ret, ERR_CANCELLED, 0, "", "refused by the test") : ERR_OK;
}

static void on_refused(void *ignored, struct job *ended, const struct error *cause) {
    atomic_fetch_add(&refused, 1);
}

static void on_done(void *ignored, struct job *const *jobs, size_t count) {
    assert_int_equal(count, 1);
    outcome = jobs[0]->outcome.code;
    if (outcome == ERR_OK) memcpy(output, jobs[0]->outcome.outputs[0].data, sizeof output);
    atomic_fetch_add(&done, 1);
}

static void on_released(void *ignored, size_t count) {
    atomic_fetch_add(&released, (int)count);
}

static void on_memory_short(void *ignored, struct job *ended, const struct error *cause) {
    fail_msg("there is enough memory");
}

static void on_lost(void *ignored, struct job *ended, const struct error *cause) {
    atomic_fetch_add(&lost, 1);
}

static void open_lanes(bool has_tenants, const char *faults) {
    batch_rig_init(1, false, false, faults);
    tenancy = NULL;
    if (has_tenants) OK(tenancy_create(&rig.device, rig.leases, &tenancy, &err));
    const struct ready_options ready_options = {.lanes = 1,
        .batch_jobs_max = 1,
        .span_ns = 2000000,
        .slab_bytes = SLAB_BYTES,
        .multiprocessors = 1};
    ready = ready_create(&ready_options);
    assert_non_null(ready);
    const struct lanes_options options = {.device = &rig.device,
        .device_pool = rig.device_pool,
        .pinned_pool = rig.pinned_pool,
        .statics = rig.statics,
        .device_counters = &rig.device_counters,
        .pinned_counters = &rig.pinned_counters,
        .counters = &board->counters,
        .leases = rig.leases,
        .tenancy = tenancy,
        .count = 1,
        .depth = 1,
        .slab_bytes = SLAB_BYTES,
        .batch_jobs_max = 1,
        .ready = ready,
        .admit = admit,
        .start = start,
        .on_refused = on_refused,
        .on_done = on_done,
        .on_released = on_released,
        .on_memory_short = on_memory_short,
        .on_lost = on_lost};
    OK(lanes_start(&options, &lanes, &err));
    job = create_ready_job(
        "id: j\nbuffers: {x: {data: {f32: [1, 2]}}, y: {data: {f32: [10, 20]}}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n");
    is_refused = false;
    done = refused = released = lost = 0;
    ready_learn(ready, 0, &job, 1, true, READY_SHORT_NS);
}

static void close_lanes(void) {
    lanes_stop(lanes);
    ready_destroy(ready);
    destroy_ready_job(job);
    tenancy_destroy(tenancy);
    batch_rig_fini();
}

static void borrow(void) {
    WAIT_FOR(lanes_borrow(lanes), ==, true); /* until the lane waits */
}

static void run_on_a_lent_lane(void) {
    borrow();
    ready_push(ready, &job, 1);
    lanes_run_borrowed(lanes);
}

/* Also where the lane's own thread has finished it. */
static void assert_done(void) {
    const float expected[] = {12, 24};
    borrow();
    lanes_run_borrowed(lanes);
    assert_int_equal(done, 1);
    assert_int_equal(released, 1);
    assert_int_equal(outcome, ERR_OK);
    assert_memory_equal(output, expected, sizeof expected);
}

TEST(a_short_job_is_run_by_the_thread_that_has_borrowed_the_lane) {
    open_lanes(false, NULL);
    run_on_a_lent_lane();
    assert_true(pthread_equal(started_by, pthread_self()));
    assert_done();
    close_lanes();
}

TEST(a_job_that_takes_longer_than_it_used_to_is_left_to_the_lanes_own_thread) {
    open_lanes(false, "cuLaunchKernel:slow=50ms@1");
    run_on_a_lent_lane();
    assert_done();
    close_lanes();
}

TEST(a_job_that_is_refused_leaves_the_lane_free) {
    open_lanes(false, NULL);
    is_refused = true;
    run_on_a_lent_lane();
    assert_int_equal(refused, 1);
    borrow();
    lanes_run_borrowed(lanes);
    assert_int_equal(done, 0);
    close_lanes();
}

TEST(a_slow_job_that_is_refused_leaves_its_lane_to_the_next_one) {
    open_lanes(false, NULL);
    job->timing = true; /* nothing is known of timed ones */
    is_refused = true;
    ready_push(ready, &job, 1);
    WAIT_FOR(refused, >, 0);
    borrow(); /* the lane waits */
    lanes_run_borrowed(lanes);
    is_refused = false;
    ready_push(ready, &job, 1);
    WAIT_FOR(released, >, 0);
    assert_done();
    close_lanes();
}

TEST(where_tenants_take_turns_no_lane_is_lent) {
    open_lanes(true, NULL);
    WAIT_FOR(ready_borrow(ready), ==, true);
    ready_give_back(ready, false);
    assert_false(lanes_borrow(lanes));
    close_lanes();
}

/* Of a process of its own, which has lost the device then. */
static void assert_lost_once(const char *faults, bool is_timed) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        open_lanes(false, faults);
        job->timing = is_timed;
        ready_learn(ready, 0, &job, 1, true, READY_SHORT_NS);
        run_on_a_lent_lane();
        lanes_stop(lanes);
        _exit(lost == 1 && done == 0 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_job_that_loses_the_gpu_ends_the_lane) {
    assert_lost_once("cuLaunchKernel:illegal_address@1", false);
}

TEST(a_gpu_that_is_lost_once_the_batch_is_done_ends_the_lane) {
    assert_lost_once("cuEventElapsedTime:illegal_address@1", true);
}

RUN_TESTS(T(a_short_job_is_run_by_the_thread_that_has_borrowed_the_lane),
    T(a_job_that_takes_longer_than_it_used_to_is_left_to_the_lanes_own_thread),
    T(a_job_that_is_refused_leaves_the_lane_free),
    T(a_slow_job_that_is_refused_leaves_its_lane_to_the_next_one),
    T(where_tenants_take_turns_no_lane_is_lent), T(a_job_that_loses_the_gpu_ends_the_lane),
    T(a_gpu_that_is_lost_once_the_batch_is_done_ends_the_lane))

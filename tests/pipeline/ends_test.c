/* Proves: from every state and in every way that a job may end, nothing of it is left behind: no
 * place in flight, count, key queue, static or promise to bring one; and the job behind it in its
 * key queue goes on, or goes back with it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "cpu_driver/cpu_driver.h"
#include "decode/decode.h"
#include "pipeline/admission.h"
#include "pipeline/ends.h"
#include "pipeline/flow.h"
#include "pipeline/lifecycle.h"
#include "pipeline/ordering.h"
#include "pipeline/retries.h"
#include "plan/planner.h"
#include "prepare/prepare.h"
#include "prepare/providers.h"
#include "support/allocation_faults.h"
#include "support/jobs.h"
#include "support/memory_broker.h"
#include "support/wait.h"
#include "testing.h"

enum { MESSAGES_MAX = 4096 };

/* {1, 1} as two floats. */
static const float ones[] = {1, 1};

struct rig {
    struct settings settings;
    struct memory_broker broker;
    struct stages stages;
    atomic_bool stop;
    size_t taken; /* messages */
    uint64_t pinned_bytes;
    struct digest digest;
    char yaml[768];
};

/* What lanes keep, from the start on, and nothing else. */
static uint64_t pinned_bytes(struct rig *rig) {
    const struct pool_books books = {rig->stages.pinned_counters, rig->stages.pool_user_count};
    struct pool_usage usage;
    struct error err;
    assert_int_equal(pool_usage_sum(&books, 1, &usage, &err), ERR_OK);
    return usage.live_bytes;
}

static int start(void **state, enum ordering_choice ordering) {
    struct rig *rig = calloc(1, sizeof *rig);
    struct error err;
    char digest[DIGEST_TEXT_SIZE];
    assert_non_null(rig);
    log_init(LOG_OFF, LOG_TEXT);
    settings_init(&rig->settings);
    rig->settings.driver = DRIVER_CPU;
    rig->settings.ordering = ordering;
    rig->settings.limits.jobs_per_key = 1;
    rig->settings.retry.base_ms = rig->settings.retry.max_ms = 1; /* tries come at once */
    free(rig->settings.programs.dir);
    rig->settings.programs.dir = strdup(GPU_WORKER_PROGRAMS_DIR);
    memory_broker_init(&rig->broker, NULL, MESSAGES_MAX);
    rig->digest = digest_of(slice_of(ones, sizeof ones));
    digest_format(&rig->digest, digest);
    snprintf(rig->yaml, sizeof rig->yaml,
        "id: job\nbuffers: {x: {static: \"%s\", data: {f32: [1, 1]}}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        digest);
    const struct executor_options options = {.settings = &rig->settings,
        .life = {.source = memory_source(&rig->broker), .sink = memory_sink(&rig->broker)},
        .stop = &rig->stop};
    if (lifecycle_start(&rig->stages, &options, &err) != ERR_OK) fail_msg("%s", err.message);
    rig->pinned_bytes = pinned_bytes(rig);
    *state = rig;
    return 0;
}

static int set_up(void **state) {
    return start(state, ORDERING_KEY);
}

static int set_up_without_order(void **state) {
    return start(state, ORDERING_NONE);
}

static int tear_down(void **state) {
    struct rig *rig = *state;
    struct error err;
    (void)!lifecycle_stop(&rig->stages, &err);
    memory_broker_fini(&rig->broker);
    settings_fini(&rig->settings);
    free(rig);
    cpu_driver_reset();
    return 0;
}

/* The counters of the pinned pool that nobody else uses while the worker runs. */
static struct pool_counters *pool_user(struct rig *rig) {
    return &rig->stages.pinned_counters[rig->settings.lanes + POOL_USER_STOP];
}

/* --- jobs in a state --- */

/* A message of the rig's one key, as the intake takes it. */
static struct delivery *poll(struct rig *rig) {
    assert_true(rig->taken < MESSAGES_MAX);
    const struct slice payload = test_job_bytes(rig->yaml);
    const struct delivery message = {
        .position = {.topic = "jobs", .offset = (int64_t)rig->taken, .lease = rig->taken},
        .received_ns = clock_ns(),
        .payload = payload,
        .has_key = true,
        .key = slice_of_text("key")};
    rig->taken++;
    struct delivery *delivery = delivery_create(&message);
    free((void *)(uintptr_t)payload.data);
    delivery->held_bytes = 1000 + flight_begin(&rig->stages.flight, 1, 1000);
    return delivery;
}

static struct job *take(struct rig *rig) {
    struct delivery *delivery = poll(rig);
    providers_number(rig->stages.providers, delivery);
    struct job *job = job_create(delivery);
    assert_non_null(job);
    job->edition = &editions_take(rig->stages.editions, 1)->shared;
    return job;
}

/* False: it waits for one ahead of it in its key queue. */
static bool decode(struct rig *rig, struct job *job) {
    struct error err;
    uint64_t number = job->delivery->number;
    assert_int_equal(decode_job(job, &edition_of(job)->decode_limits, &err), ERR_OK);
    job_move(job, JOB_DECODED);
    providers_add(rig->stages.providers, job);
    providers_decoded(rig->stages.providers, &number, 1);
    return ordering_enter(&rig->stages, job);
}

/* What it names is on the device: so it is ready at once. */
static void prepare(struct rig *rig, struct job *job) {
    struct stages *stages = &rig->stages;
    const struct edition *edition = edition_of(job);
    const struct plan *plan;
    struct job *ready;
    struct error err;
    flight_count_jobs(&stages->flight, &job, 1, COUNT_HOLDING);
    assert_int_equal(plan_job(job, edition->registry, &edition->plan_limits, &plan, &err), ERR_OK);
    assert_int_equal(publisher_reserve(job, plan, plan->result_bytes_max, true, &err), ERR_OK);
    assert_int_equal(
        prepare_submit(stages->prepare, job, plan, edition->modules, &ready, &err), ERR_OK);
    assert_ptr_equal(ready, job);
}

/* Alone, and large: its outputs came to the pinned memory that its result leaves from. */
static void run(struct rig *rig, struct job *job) {
    struct error err;
    struct pool_block block;
    job_move(job, JOB_ON_DEVICE);
    job->run = RUN_STARTED;
    assert_int_equal(
        pool_acquire(rig->stages.pinned_pool, pool_user(rig), job->room.bytes, &block, &err),
        ERR_OK);
    job->room.data = pool_block_pinned(&block).data;
    job->room.pinned_bytes = block.bytes;
    memcpy(job_output_place(job, 0), ones, sizeof ones);
    job->found[0] = slice_of(job_output_place(job, 0), sizeof ones);
    job->outcome = (struct outcome){.outputs = job->found};
}

/* A ready job whose memory was given back, to wait until there is room. */
static void let_wait_for_memory(struct rig *rig, struct job *job) {
    prepare_release(job, rig->stages.statics, rig->stages.residents);
    flight_count_jobs(&rig->stages.flight, &job, 1, COUNT_WAITING_FOR_MEMORY);
}

static void bring_to(
    struct rig *rig, struct job *job, enum job_state state, bool waits_for_memory) {
    uint64_t number = job->delivery->number;
    if (state == JOB_TAKEN) providers_decoded(rig->stages.providers, &number, 1);
    if (state == JOB_TAKEN) return;
    assert_true(decode(rig, job));
    if (state == JOB_DECODED) return;
    if (state == JOB_RETRYING) job_move(job, state);
    if (state == JOB_RETRYING) return;
    prepare(rig, job);
    if (state == JOB_PREPARING) job->state = state; /* as it was a moment ago */
    if (waits_for_memory) let_wait_for_memory(rig, job);
    if (state == JOB_ON_DEVICE || state == JOB_UPLOADING) run(rig, job);
    if (state != JOB_UPLOADING) return;
    prepare_release(job, rig->stages.statics, rig->stages.residents);
    flight_count_jobs(&rig->stages.flight, &job, 1, COUNT_NONE);
    flight_begin_room(&rig->stages.flight);
    job_move(job, state);
}

/* --- what is left --- */

/* What is left behind never comes to zero. */
static void wait_for_zero(struct rig *rig, const uint64_t *count, const char *what) {
    const struct wait wait = wait_begin();
    flight_lock(&rig->stages.flight);
    while (*count > 0 && wait_goes_on(&wait)) flight_wait(&rig->stages.flight, 100);
    uint64_t left = *count;
    flight_unlock(&rig->stages.flight);
    if (left > 0) fail_msg("%llu %s", (unsigned long long)left, what);
}

/* A lane counts down last: its jobs have left their key queues then. */
static void wait_until_all_are_over(struct rig *rig) {
    const struct flight *flight = &rig->stages.flight;
    wait_for_zero(rig, &flight->messages, "are in flight");
    wait_for_zero(rig, &flight->bytes, "bytes are in flight");
    wait_for_zero(rig, &flight->holding, "hold memory");
    wait_for_zero(rig, &flight->waiting_for_memory, "wait for memory");
    wait_for_zero(rig, &flight->rooms, "are on their way from pinned memory");
}

static void assert_nothing_is_left(struct rig *rig) {
    struct stages *stages = &rig->stages;
    wait_until_all_are_over(rig);
    assert_int_equal(key_order_waiting_count(stages->key_order), 0);
    assert_int_equal(retries_count(stages->retries), 0);
    /* The key's next job passes, and nobody ahead of it brings the static. */
    struct job *next = take(rig);
    assert_true(decode(rig, next));
    assert_false(providers_are_ahead(stages->providers, next, &rig->digest));
    job_end(stages, next, END_HANDED_BACK);
    /* Whatever is not in use can be shed. */
    statics_shed(stages->statics, &stages->device_counters[stages->pool_user_count - 1], SIZE_MAX);
    assert_int_equal(statics_read_counts(stages->statics).cached_count, 0);
    assert_int_equal(stages->flight.messages, 0);
    assert_int_equal(pinned_bytes(rig), rig->pinned_bytes);
}

/* --- every state, every end --- */

static const char *const ends[] = {[END_ANSWERED] = "answered",
    [END_RETRIED] = "retried",
    [END_HANDED_BACK] = "handed back",
    [END_ABANDONED] = "abandoned"};

/* From where a job may end so; one that waits for memory is ready and holds nothing. */
static bool is_a_way(enum job_state state, enum end how) {
    switch (state) {
    case JOB_TAKEN: return how != END_RETRIED;
    case JOB_RETRYING: return how == END_HANDED_BACK || how == END_ABANDONED;
    case JOB_WAITING_FOR_KEY: return false; /* with the job before it */
    default: return state < JOB_ANSWERED;
    }
}

/* So that static and kernel are on the device. */
static void run_one(struct rig *rig) {
    struct job *warm = take(rig);
    if (decode(rig, warm)) flow_plan(&rig->stages, &warm, 1);
    wait_until_all_are_over(rig);
}

static void end_one(struct rig *rig, enum job_state state, bool waits_for_memory, enum end how) {
    print_message("%s%s, %s\n", waits_for_memory ? "waiting for memory, " : "",
        job_state_name(state), ends[how]);
    run_one(rig);
    size_t first = rig->taken;
    struct job *job = take(rig);
    bring_to(rig, job, state, waits_for_memory);
    bool has_key_queue = job->key_queue != NULL;
    struct job *behind = take(rig);
    if (decode(rig, behind) != !has_key_queue) fail_msg("the job behind it passed");
    if (!has_key_queue) job_end(&rig->stages, behind, END_HANDED_BACK);
    bool has_run = state == JOB_ON_DEVICE || state == JOB_UPLOADING;
    if (how == END_RETRIED || !has_run)
        job->outcome.code = error_set(&job->outcome.err, ERR_IO, 0, "fix", "it failed");
    job_end(&rig->stages, job, how);
    if (state == JOB_ON_DEVICE) ends_on_released(&rig->stages, 1);
    assert_nothing_is_left(rig);
    bool is_finished = how == END_ANSWERED || how == END_RETRIED;
    assert_int_equal(atomic_load(&rig->broker.finished[first]), is_finished);
    bool goes_on = has_key_queue && how != END_HANDED_BACK;
    assert_int_equal(atomic_load(&rig->broker.finished[first + 1]), goes_on);
}

TEST(nothing_of_a_job_is_left_behind_whatever_its_state_and_however_it_ends) {
    struct rig *rig = *state;
    for (enum job_state from = 0; from < JOB_ANSWERED; from++)
        for (enum end how = 0; how <= END_ABANDONED; how++)
            if (is_a_way(from, how)) end_one(rig, from, false, how);
    for (enum end how = 0; how <= END_ABANDONED; how++) end_one(rig, JOB_READY, true, how);
}

TEST(an_answer_that_others_gave_meanwhile_is_over_and_not_finished) {
    struct rig *rig = *state;
    rig->broker.revoke_from = 1;
    struct job *jobs[2] = {take(rig), take(rig)};
    for (int i = 0; i < 2; i++)
        if (decode(rig, jobs[i])) flow_plan(&rig->stages, &jobs[i], 1);
    assert_nothing_is_left(rig);
    assert_int_equal(atomic_load(&rig->broker.finished[0]), 1);
    assert_int_equal(atomic_load(&rig->broker.finished[1]), 0);
}

TEST(an_answer_that_finds_no_taker_fails_the_run_and_leaves_nothing) {
    struct rig *rig = *state;
    rig->broker.refuse_errors = true;
    struct job *jobs[2] = {take(rig), take(rig)};
    bring_to(rig, jobs[0], JOB_DECODED, false);
    assert_false(decode(rig, jobs[1])); /* it waits, and is dropped once the run has failed */
    struct error err;
    error_set(&err, ERR_BAD_JOB, 0, "fix", "it failed");
    job_reject(&rig->stages, jobs[0], &err);
    wait_until_all_are_over(rig);
    assert_true(stages_has_failed(&rig->stages));
    assert_int_equal(atomic_load(&rig->broker.finished_count), 0);
}

TEST(a_result_that_cannot_be_encoded_fails_the_run_and_leaves_nothing) {
    struct rig *rig = *state;
    run_one(rig);
    struct job *job = take(rig);
    bring_to(rig, job, JOB_ON_DEVICE, false);
    job->result->payload_max = 1;
    job_end(&rig->stages, job, END_ANSWERED);
    ends_on_released(&rig->stages, 1);
    wait_until_all_are_over(rig);
    assert_true(stages_has_failed(&rig->stages));
    assert_int_equal(pinned_bytes(rig), rig->pinned_bytes);
}

/* What is logged while a job in that state is refused. */
static void read_log_of_refusal(struct rig *rig, enum job_state state, char *ret, int size) {
    struct error err;
    struct job *job = take(rig);
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(log);
    bring_to(rig, job, state, false);
    error_set(&err, ERR_BAD_JOB, 0, "fix", "it is no job");
    dup2(fileno(log), STDERR_FILENO);
    log_init(LOG_WARN, LOG_TEXT);
    job_reject(&rig->stages, job, &err);
    log_init(LOG_OFF, LOG_TEXT);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(log);
    ret[fread(ret, 1, (size_t)size - 1, log)] = 0;
    fclose(log);
    assert_nothing_is_left(rig);
}

TEST(a_refusal_is_logged_where_no_result_tells_of_it) {
    char log[512];
    read_log_of_refusal(*state, JOB_TAKEN, log, sizeof log); /* its id is not known */
    assert_non_null(strstr(log, "dead letter: jobs/0/0: bad_job: it is no job\n"));
    read_log_of_refusal(*state, JOB_DECODED, log, sizeof log);
    assert_string_equal(log, "");
}

/* --- places in key queues --- */

/* A job waits for one ahead of it, which provides its static. True: another of its key passes. */
static bool is_passed_while_it_waits(struct rig *rig) {
    struct job *waiting = take(rig), *other = take(rig);
    assert_true(decode(rig, waiting));
    flight_count_jobs(&rig->stages.flight, &waiting, 1, COUNT_HOLDING);
    flow_on_waiting(&rig->stages, waiting);
    assert_int_equal(rig->stages.flight.holding, 0);
    bool passes = decode(rig, other);
    if (passes) job_end(&rig->stages, other, END_HANDED_BACK);
    job_end(&rig->stages, waiting, END_HANDED_BACK);
    assert_nothing_is_left(rig);
    return passes;
}

TEST(a_job_that_waits_for_a_static_keeps_its_place_among_the_jobs_of_its_key) {
    assert_false(is_passed_while_it_waits(*state));
}

TEST(without_key_order_it_leaves_its_place_which_the_one_that_it_waits_for_may_need) {
    assert_true(is_passed_while_it_waits(*state));
}

/* --- partitions that leave --- */

/* The first of a key's `count` jobs fails once the partitions of `left` of them have left. */
static void fail_first(struct rig *rig, int count, size_t left) {
    struct error err;
    struct job *first = take(rig);
    bring_to(rig, first, JOB_DECODED, false);
    for (int i = 1; i < count; i++) assert_false(decode(rig, take(rig)));
    atomic_store(&rig->broker.left_count, left);
    error_set(&err, ERR_BAD_JOB, 0, "fix", "it failed");
    job_fail(&rig->stages, first, &err);
    assert_nothing_is_left(rig);
}

TEST(a_job_that_has_not_started_is_not_answered_once_its_partition_has_left) {
    struct rig *rig = *state;
    fail_first(rig, 2, SIZE_MAX);
    assert_int_equal(atomic_load(&rig->broker.finished_count), 0);
    assert_int_equal(memory_count(&rig->broker, ROUTE_DEAD_LETTER), 0);
}

TEST(jobs_of_a_partition_that_has_come_back_run_behind_those_that_went_with_it) {
    struct rig *rig = *state;
    fail_first(rig, 4, 2);
    for (size_t i = 0; i < 4; i++) assert_int_equal(atomic_load(&rig->broker.finished[i]), i >= 2);
}

TEST(a_job_that_has_started_is_answered_though_its_partition_leaves) {
    struct rig *rig = *state;
    struct error err;
    run_one(rig);
    struct job *job = take(rig);
    bring_to(rig, job, JOB_READY, false);
    assert_int_equal(flow_start(&rig->stages, job, &err), ERR_OK);
    run(rig, job);
    atomic_store(&rig->broker.left_count, SIZE_MAX);
    job_end(&rig->stages, job, END_ANSWERED);
    ends_on_released(&rig->stages, 1);
    assert_nothing_is_left(rig);
    assert_int_equal(atomic_load(&rig->broker.finished[1]), 1);
}

/* --- short memory --- */

/* False: the job's way takes fewer allocations on the thread that admits it. */
static bool fail_allocation(uint64_t nth) {
    void *state;
    set_up(&state);
    struct rig *rig = state;
    run_one(rig);
    size_t first = rig->taken;
    struct delivery *delivery = poll(rig);
    allocation_faults_arm(nth);
    admission_take(rig->stages.admission, &delivery, 1);
    bool has_failed = allocation_faults_end();
    assert_nothing_is_left(rig);
    int finished = atomic_load(&rig->broker.finished[first]);
    if (finished != !stages_has_failed(&rig->stages))
        fail_msg("allocation %llu: answered %d times", (unsigned long long)nth, finished);
    tear_down(&state);
    return has_failed;
}

TEST(whichever_allocation_fails_a_job_is_answered_or_the_run_fails_and_nothing_is_left) {
    uint64_t nth = 1;
    while (fail_allocation(nth)) nth++;
    assert_true(nth > 1);
}

#define ENDS(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(ENDS(nothing_of_a_job_is_left_behind_whatever_its_state_and_however_it_ends),
    ENDS(an_answer_that_others_gave_meanwhile_is_over_and_not_finished),
    ENDS(a_result_that_cannot_be_encoded_fails_the_run_and_leaves_nothing),
    ENDS(an_answer_that_finds_no_taker_fails_the_run_and_leaves_nothing),
    ENDS(a_refusal_is_logged_where_no_result_tells_of_it),
    ENDS(a_job_that_waits_for_a_static_keeps_its_place_among_the_jobs_of_its_key),
    cmocka_unit_test_setup_teardown(
        without_key_order_it_leaves_its_place_which_the_one_that_it_waits_for_may_need,
        set_up_without_order, tear_down),
    ENDS(a_job_that_has_not_started_is_not_answered_once_its_partition_has_left),
    ENDS(jobs_of_a_partition_that_has_come_back_run_behind_those_that_went_with_it),
    ENDS(a_job_that_has_started_is_answered_though_its_partition_leaves),
    T(whichever_allocation_fails_a_job_is_answered_or_the_run_fails_and_nothing_is_left))

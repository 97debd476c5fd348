/* Preparation: what is warm comes back at once, what is cold later, and what is given back. */
#include "prepare/prepare.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "prepare/providers.h"
#include "publish/publisher.h"
#include "support/device_rig.h"
#include "support/jobs.h"
#include "support/scratch.h"
#include "testing.h"

enum { BLOB_BYTES_MAX = 64 };

static const float ones[] = {1, 1};

/* What the callbacks were told; `lock` guards the counts. */
static struct device_rig rig;
static struct prepare *prepare;
static struct providers *providers;
static char *folder;
static struct blobs *blobs;
static struct digest digest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t ready_count, failed_count, waiting_count, resumed_count, dropped_count,
    not_stored_count, begun_count, ended_count;
static struct job *last;
static struct error failure, err;
static bool is_unwanted;

static void note(size_t *count, struct job *job) {
    pthread_mutex_lock(&lock);
    (*count)++;
    if (job != NULL) last = job;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const size_t *count, size_t least) {
    pthread_mutex_lock(&lock);
    while (*count < least) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static enum err still_wanted(void *context, const struct job *job, struct error *why) {
    return is_unwanted ? error_set(why, ERR_CANCELLED, 0, "", "nobody wants it") : ERR_OK;
}

static void on_begin(void *context, const struct job *job) {
    note(&begun_count, NULL);
}

static void on_end(void *context) {
    note(&ended_count, NULL);
}

static void on_ready(void *context, struct job *job) {
    note(&ready_count, job);
}

static void on_failed(void *context, struct job *job, const struct error *why) {
    failure = *why;
    note(&failed_count, job);
}

static void on_waiting(void *context, struct job *job) {
    note(&waiting_count, NULL);
}

static void on_resumed(void *context, struct job *job) {
    note(&resumed_count, NULL);
}

static void on_dropped(void *context, struct job *job) {
    note(&dropped_count, job);
}

static void on_not_stored(void *context, const struct error *why) {
    failure = *why;
    note(&not_stored_count, NULL);
}

static int set_up(void **state) {
    device_rig_init(&rig, NULL);
    providers = providers_create();
    folder = scratch_create();
    digest = digest_of(slice_of(ones, sizeof ones));
    ready_count = failed_count = waiting_count = resumed_count = dropped_count = not_stored_count =
        begun_count = ended_count = 0;
    is_unwanted = false;
    const struct blobs_options store = {
        .dir = folder, .bytes_max = BLOB_BYTES_MAX, .held_bytes_max = 1 << 20};
    assert_int_equal(blobs_create(&store, &blobs, &err), ERR_OK);
    const struct prepare_options options = {.device = &rig.device,
        .providers = providers,
        .statics = rig.statics,
        .residents = rig.residents,
        .blobs = blobs,
        .isolation = ISOLATION_KEY,
        .threads = 1,
        .queue_length = 8,
        .still_wanted = still_wanted,
        .on_begin = on_begin,
        .on_end = on_end,
        .on_ready = on_ready,
        .on_failed = on_failed,
        .on_waiting = on_waiting,
        .on_resumed = on_resumed,
        .on_dropped = on_dropped,
        .on_not_stored = on_not_stored};
    assert_int_equal(prepare_create(&options, &prepare, &err), ERR_OK);
    return 0;
}

static int tear_down(void **state) {
    prepare_finish(prepare);
    prepare_drop_waiting(prepare);
    prepare_destroy(prepare);
    providers_destroy(providers);
    blobs_destroy(blobs);
    scratch_remove(folder);
    assert_int_equal(begun_count, ended_count);
    device_rig_fini(&rig);
    return 0;
}

static struct job *take_job(const char *yaml) {
    struct job *job = test_job(yaml);
    providers_number(providers, job->delivery);
    providers_add(providers, job);
    providers_decoded(providers, &job->delivery->number, 1);
    return job;
}

/* y = x + y, with x as said. */
static struct job *take(const char *x) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {y: {bytes: 8}, x: {%s}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        x);
    return take_job(yaml);
}

static struct job *take_named(const char *source, const char *more) {
    char text[DIGEST_TEXT_SIZE], x[256];
    snprintf(x, sizeof x, "bytes: 8, %s: \"%s\"%s", source, digest_format(&digest, text), more);
    return take(x);
}

#define DATA ", data: {f32: [1, 1]}"

/* The job where it is ready at once; else NULL. */
static struct job *submit(struct job *job) {
    struct job *ready = NULL;
    const struct plan *plan = device_rig_plan(&rig, job);
    assert_int_equal(prepare_submit(prepare, job, plan, rig.set, &ready, &err), ERR_OK);
    assert_ptr_equal(job->plan, plan);
    return ready;
}

static void end_job(struct job *job) {
    prepare_release(job, rig.statics, rig.residents);
    prepare_wake(prepare, providers_end(providers, job, false));
    job_destroy(job);
}

/* Brings the static, so that it is on the device. */
static void warm_up(void) {
    struct job *job = take_named("static", DATA);
    assert_null(submit(job));
    wait_for(&ready_count, 1);
    end_job(job);
    ready_count = 0;
}

TEST(a_job_that_needs_nothing_cold_comes_back_at_once) {
    struct job *job = take("bytes: 8");
    assert_ptr_equal(submit(job), job);
    assert_int_equal(job->state, JOB_READY);
    assert_non_null(job->kernels[0].kernel);
    assert_non_null(job->kernels[0].module);
    assert_true(job->ready_ns >= job->submitted_ns);
    assert_int_equal(job->static_hits + job->static_misses, 0);
    assert_int_equal(job->tenant.size, strlen("test") + 1);
    end_job(job);
    assert_int_equal(ready_count + begun_count, 0);
}

TEST(a_cold_static_is_uploaded_by_a_thread_and_then_found_by_others) {
    struct job *cold = take_named("static", DATA);
    assert_null(submit(cold));
    wait_for(&ready_count, 1);
    assert_ptr_equal(last, cold);
    assert_int_equal(cold->state, JOB_READY);
    assert_non_null(cold->statics[1]);
    assert_int_equal(cold->static_misses, 1);
    assert_int_equal(cold->static_hits, 0);
    assert_int_equal(cold->static_bytes_uploaded, 8);
    assert_int_equal(cold->static_bytes_saved, 0);
    struct job *warm = take_named("static", "");
    assert_ptr_equal(submit(warm), warm);
    assert_int_equal(warm->static_misses, 0);
    assert_int_equal(warm->static_hits, 1);
    assert_int_equal(warm->static_bytes_uploaded, 0);
    assert_int_equal(warm->static_bytes_saved, 8);
    end_job(cold);
    end_job(warm);
}

TEST(data_of_another_digest_fails_and_leaves_nothing_on_the_device) {
    struct job *job = take_named("static", ", data: {f32: [1, 2]}");
    assert_null(submit(job));
    wait_for(&failed_count, 1);
    assert_int_equal(failure.code, ERR_DIGEST_MISMATCH);
    assert_null(job->statics[1]);
    end_job(job);
    assert_null(statics_find(rig.statics, &digest));
}

TEST(a_static_of_another_size_than_the_buffer_says_fails) {
    char text[DIGEST_TEXT_SIZE], x[256];
    warm_up();
    snprintf(x, sizeof x, "bytes: 12, static: \"%s\"", digest_format(&digest, text));
    struct job *job = take(x);
    assert_null(submit(job));
    assert_int_equal(failed_count, 1); /* at once: nothing of it is cold */
    assert_int_equal(failure.code, ERR_DIGEST_MISMATCH);
    assert_non_null(strstr(failure.message, "'x' says 12 bytes, and the static has 8"));
    end_job(job);
}

/* Two buffers are the same static, and one of them brings it. */
TEST(a_static_that_another_buffer_of_the_job_brings_is_found_in_any_order) {
    static const char *const data[] = {"", DATA};
    for (size_t first = 0; first < 2; first++) {
        char name[DIGEST_TEXT_SIZE], yaml[512];
        digest_format(&digest, name);
        snprintf(yaml, sizeof yaml,
            "id: j\nbuffers: {y: {bytes: 8}, a: {bytes: 8, static: \"%s\"%s}, b: {bytes: 8, "
            "static: "
            "\"%s\"%s}}\nsteps: [{program: saxpy, args: [{f32: 1}, a, y, {u32: 2}], elements: 2},\n"
            "{program: saxpy, args: [{f32: 1}, b, y, {u32: 2}], elements: 2}]\noutputs: [{buffer: "
            "y}]\n",
            name, data[first], name, data[!first]);
        struct job *job = take_job(yaml);
        assert_null(submit(job));
        wait_for(&ready_count, (unsigned)first + 1);
        assert_int_equal(failed_count, 0);
        assert_non_null(job->statics[1]);
        assert_ptr_equal(job->statics[1], job->statics[2]);
        assert_int_equal(job->static_misses, 1);
        assert_int_equal(job->static_hits, 1);
        assert_int_equal(job->static_bytes_saved, 8);
        end_job(job);
        assert_true(device_rig_shed_static(&rig, &digest));
    }
}

TEST(a_static_that_nobody_has_is_missing) {
    struct job *job = take_named("static", "");
    assert_null(submit(job));
    wait_for(&failed_count, 1);
    assert_int_equal(failure.code, ERR_STATIC_MISSING);
    end_job(job);
}

TEST(a_static_that_came_with_a_message_is_kept_in_the_store_for_those_that_come_without) {
    warm_up();
    assert_true(device_rig_shed_static(&rig, &digest));
    struct job *job = take_named("static", "");
    assert_null(submit(job));
    wait_for(&ready_count, 1);
    assert_int_equal(job->static_misses, 1);
    end_job(job);
    assert_int_equal(not_stored_count, 0);
}

TEST(a_static_that_the_store_does_not_take_is_used_all_the_same) {
    char text[DIGEST_TEXT_SIZE], x[512];
    static const uint8_t zeroes[BLOB_BYTES_MAX + 4];
    digest = digest_of(slice_of(zeroes, sizeof zeroes));
    snprintf(x, sizeof x, "static: \"%s\", data: {u32: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
        digest_format(&digest, text));
    struct job *job = take(x);
    assert_null(submit(job));
    wait_for(&ready_count, 1);
    assert_int_equal(not_stored_count, 1);
    assert_int_equal(failure.code, ERR_TOO_LARGE);
    end_job(job);
}

TEST(a_blob_is_fetched_for_its_job_alone_and_given_back) {
    assert_int_equal(blobs_put(blobs, &digest, slice_of(ones, sizeof ones), &err), ERR_OK);
    struct job *job = take_named("blob", "");
    assert_null(submit(job));
    wait_for(&ready_count, 1);
    assert_int_equal(job->blobs[1].bytes.size, sizeof ones);
    assert_memory_equal(job->blobs[1].bytes.data, ones, sizeof ones);
    assert_int_equal(job->static_hits + job->static_misses, 0);
    prepare_release(job, rig.statics, rig.residents);
    assert_null(job->blobs[1].mapping);
    assert_null(job->kernels[0].module);
    assert_null(prepare_resubmit(prepare, (job->state = JOB_DECODED, job)));
    wait_for(&ready_count, 2);
    end_job(job);
}

TEST(a_blob_that_is_not_there_is_missing) {
    struct job *job = take_named("blob", "");
    assert_null(submit(job));
    wait_for(&failed_count, 1);
    assert_int_equal(failure.code, ERR_BLOB_MISSING);
    end_job(job);
}

TEST(a_job_that_is_not_wanted_any_more_fetches_nothing) {
    is_unwanted = true;
    struct job *job = take_named("static", DATA);
    assert_null(submit(job));
    wait_for(&failed_count, 1);
    assert_int_equal(failure.code, ERR_CANCELLED);
    end_job(job);
    assert_null(statics_find(rig.statics, &digest));
}

/* --- waiting for a provider --- */

TEST(a_job_waits_for_the_static_that_one_ahead_brings_and_has_it_when_it_is_there) {
    struct job *provider = take_named("static", DATA), *behind = take_named("static", "");
    assert_null(submit(behind));
    assert_int_equal(waiting_count, 1);
    assert_null(behind->statics[1]);
    assert_null(behind->kernels[0].module); /* it holds nothing */
    assert_null(submit(provider));
    wait_for(&ready_count, 2);
    assert_int_equal(resumed_count, 1);
    assert_int_equal(behind->static_hits, 1);
    assert_int_equal(provider->static_misses, 1);
    assert_ptr_equal(behind->statics[1], provider->statics[1]);
    assert_false(behind->is_woken);
    end_job(provider);
    end_job(behind);
    assert_true(device_rig_shed_static(&rig, &digest)); /* both have let go of it */
}

TEST(a_job_whose_provider_ended_without_bringing_looks_for_itself) {
    struct job *provider = take_named("static", DATA), *behind = take_named("static", "");
    assert_null(submit(behind));
    end_job(provider);
    wait_for(&failed_count, 1);
    assert_ptr_equal(last, behind);
    assert_int_equal(failure.code, ERR_STATIC_MISSING);
    assert_int_equal(resumed_count, 1);
    end_job(behind);
}

TEST(jobs_that_still_wait_when_the_run_ends_are_dropped) {
    struct job *provider = take_named("static", DATA), *behind = take_named("static", "");
    assert_null(submit(behind));
    prepare_finish(prepare);
    prepare_drop_waiting(prepare);
    assert_int_equal(dropped_count, 1);
    assert_ptr_equal(last, behind);
    end_job(provider);
    end_job(behind);
}

TEST(a_job_that_is_cold_when_the_threads_have_ended_is_dropped) {
    prepare_finish(prepare);
    struct job *job = take_named("static", DATA);
    assert_null(submit(job));
    prepare_drop_waiting(prepare);
    assert_int_equal(dropped_count, 1);
    assert_ptr_equal(last, job);
    end_job(job);
}

/* --- letting go, and again --- */

TEST(a_job_that_found_no_memory_is_ready_when_it_is_prepared_again) {
    warm_up();
    struct job *job = take_named("static", "");
    assert_ptr_equal(submit(job), job);
    prepare_release(job, rig.statics, rig.residents);
    job->ready_ns = 0; /* as if it had found none at first */
    assert_int_equal(prepare_again(prepare, job, &err), ERR_OK);
    assert_true(job->ready_ns >= job->submitted_ns);
    end_job(job);
}

TEST(what_a_job_gave_back_can_be_shed_and_is_fetched_and_counted_anew) {
    warm_up();
    struct job *job = take_named("static", "");
    assert_ptr_equal(submit(job), job);
    assert_false(device_rig_shed_static(&rig, &digest));
    prepare_release(job, rig.statics, rig.residents);
    assert_null(job->statics[1]);
    assert_true(device_rig_shed_static(&rig, &digest));
    assert_int_equal(prepare_again(prepare, job, &err), ERR_OK);
    assert_non_null(job->statics[1]);
    assert_int_equal(job->static_hits, 0);
    assert_int_equal(job->static_misses, 1);
    prepare_release(job, rig.statics, rig.residents);
    assert_int_equal(prepare_again(prepare, job, &err), ERR_OK);
    assert_int_equal(job->static_hits, 1);
    assert_int_equal(job->static_misses, 0);
    end_job(job);
}

TEST(a_job_that_was_not_prepared_has_nothing_to_give_back) {
    struct job *job = take("bytes: 8");
    prepare_release(job, rig.statics, rig.residents);
    end_job(job);
}

/* --- residents --- */

TEST(a_resident_that_cannot_be_had_fails_the_job_at_once) {
    struct job *job = take("bytes: 8, resident: theta");
    job->delivery->key = slice_of_text("key");
    job->delivery->has_key = true;
    assert_null(submit(job));
    assert_int_equal(failed_count, 1);
    assert_int_equal(failure.code, ERR_RESIDENT_GONE);
    end_job(job);
}

TEST(start_values_are_wanted_by_the_job_that_creates_and_nothing_by_one_that_only_reads) {
    struct job *job = take("bytes: 8, resident: theta, init: {fill: 1}");
    job->delivery->key = slice_of_text("key");
    job->delivery->has_key = true;
    assert_ptr_equal(submit(job), job);
    assert_true(prepare_wants(job, 1, true));
    assert_true(prepare_wants(job, 0, false));
    job->is_applied = true;
    assert_false(prepare_wants(job, 1, true));
    assert_false(prepare_wants(job, 0, false));
    job->is_applied = false;
    job->run = RUN_DONE;
    end_job(job);
    job = take("bytes: 8, resident: theta, init: {fill: 1}");
    job->delivery->key = slice_of_text("key");
    job->delivery->position.offset = 1;
    assert_ptr_equal(submit(job), job);
    assert_false(prepare_wants(job, 1, true));
    assert_true(prepare_wants(job, 1, false));
    end_job(job);
}

TEST(outputs_of_all_instances_are_found_in_their_places) {
    uint8_t room[64];
    uint64_t places[] = {40, 0};
    struct job *job = take_job(
        "id: j\ncount: 3\nbuffers: {x: {bytes: 8, each: true}, y: {bytes: 8, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}, {buffer: x}]\n");
    job->room = (struct result_room){.bytes = sizeof room, .places = places, .data = room};
    assert_ptr_equal(submit(job), job);
    assert_ptr_equal(job->found[0].data, room + 40);
    assert_ptr_equal(job->found[1].data, room);
    assert_int_equal(job->found[0].size, 24);
    assert_int_equal(job->found[1].size, 24);
    assert_null(job->spools[0]);
    end_job(job);
}

TEST(an_output_of_all_instances_that_goes_to_the_blob_store_has_no_place) {
    uint64_t places[] = {0};
    uint8_t room[8];
    struct job *ready,
        *job = take_job("id: j\ncount: 3\nbuffers: {x: {bytes: 8}, y: {bytes: 8, each: true}}\n"
                        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
                        "outputs: [{buffer: y}]\n");
    struct plan plan = *device_rig_plan(&rig, job);
    const struct plan_output spooled = {.is_stored = true, .is_spooled = true};
    plan.outputs = &spooled;
    job->room = (struct result_room){.bytes = sizeof room, .places = places, .data = room};
    assert_int_equal(prepare_submit(prepare, job, &plan, rig.set, &ready, &err), ERR_OK);
    assert_null(ready); /* a spool is made first */
    wait_for(&ready_count, 1);
    assert_null(job->found[0].data);
    assert_int_equal(job->found[0].size, 24);
    assert_non_null(job->spools[0]);
    spools_end(job->spools, job->output_count);
    end_job(job);
}

/* x and y come with the message, which is small enough to lie in the job's block. */
static struct job *take_larger(uint64_t elements) {
    char yaml[8192], *next = yaml, *end = yaml + sizeof yaml;
    next += snprintf(next, (size_t)(end - next), "id: j\nbuffers:\n");
    for (const char *name = "xy"; *name != 0; name++) {
        next += snprintf(next, (size_t)(end - next), "  %c: {data: {f32: [1", *name);
        for (uint64_t i = 1; i < elements; i++) next += snprintf(next, (size_t)(end - next), ",1");
        next += snprintf(next, (size_t)(end - next), "]}}\n");
    }
    snprintf(next, (size_t)(end - next),
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: %" PRIu64 "}], elements: %" PRIu64
        "}]\noutputs: [{buffer: y}]\n",
        elements, elements);
    return take_job(yaml);
}

TEST(a_job_of_4_KiB_a_buffer_needs_no_memory_but_its_block) {
    struct job *job = take_larger(1024);
    const struct plan *plan = device_rig_plan(&rig, job);
    assert_int_equal(publisher_reserve(job, plan, plan->result_bytes_max, false, &err), ERR_OK);
    assert_ptr_equal(submit(job), job);
    assert_null(job->arena.chunks);
    end_job(job);
}

#define P(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(P(a_job_that_needs_nothing_cold_comes_back_at_once),
    P(a_cold_static_is_uploaded_by_a_thread_and_then_found_by_others),
    P(data_of_another_digest_fails_and_leaves_nothing_on_the_device),
    P(a_static_of_another_size_than_the_buffer_says_fails),
    P(a_static_that_another_buffer_of_the_job_brings_is_found_in_any_order),
    P(a_static_that_nobody_has_is_missing),
    P(a_static_that_came_with_a_message_is_kept_in_the_store_for_those_that_come_without),
    P(a_static_that_the_store_does_not_take_is_used_all_the_same),
    P(a_blob_is_fetched_for_its_job_alone_and_given_back), P(a_blob_that_is_not_there_is_missing),
    P(a_job_that_is_not_wanted_any_more_fetches_nothing),
    P(a_job_waits_for_the_static_that_one_ahead_brings_and_has_it_when_it_is_there),
    P(a_job_whose_provider_ended_without_bringing_looks_for_itself),
    P(jobs_that_still_wait_when_the_run_ends_are_dropped),
    P(a_job_that_is_cold_when_the_threads_have_ended_is_dropped),
    P(a_job_that_found_no_memory_is_ready_when_it_is_prepared_again),
    P(what_a_job_gave_back_can_be_shed_and_is_fetched_and_counted_anew),
    P(a_job_that_was_not_prepared_has_nothing_to_give_back),
    P(a_resident_that_cannot_be_had_fails_the_job_at_once),
    P(a_job_of_4_KiB_a_buffer_needs_no_memory_but_its_block),
    P(outputs_of_all_instances_are_found_in_their_places),
    P(an_output_of_all_instances_that_goes_to_the_blob_store_has_no_place),
    P(start_values_are_wanted_by_the_job_that_creates_and_nothing_by_one_that_only_reads))

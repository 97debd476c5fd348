/* Outputs that go to the blob store: which ones, what is copied, and what a failure leaves. */
#include "publish/uploader.h"

#include <pthread.h>
#include <string.h>

#include "support/jobs.h"
#include "support/scratch.h"
#include "testing.h"

enum { INLINE_BYTES = 8, BLOB_BYTES = 64, OUTPUTS = 4 };

static const char job_yaml[] =
    "id: one\nbuffers: {a: {bytes: 9}, b: {bytes: 8}, c: {bytes: 65}, d: {bytes: 10}}\n"
    "steps: [{program: saxpy, args: [{f32: 1}, a, b, {u32: 1}], elements: 1}]\n"
    "outputs: [{buffer: a}, {buffer: b}, {buffer: c}, {buffer: d}]\n";

static char *folder;
static struct blobs *blobs;
static struct uploader *uploader;
static struct job *job, *uploaded[8];
static size_t uploaded_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t bytes[OUTPUTS][128];
static struct slice outputs[OUTPUTS];
static struct error err;

static void note_uploaded(void *context, struct job *one) {
    pthread_mutex_lock(&lock);
    uploaded[uploaded_count++] = one;
    pthread_mutex_unlock(&lock);
}

/* A job whose run gave so many bytes in each output. */
static struct job *job_with(size_t a, size_t b, size_t c, size_t d) {
    const size_t sizes[] = {a, b, c, d};
    struct job *one = test_job(job_yaml);
    for (size_t i = 0; i < OUTPUTS; i++) {
        memset(bytes[i], (int)('a' + i), sizeof bytes[i]);
        outputs[i] = slice_of(bytes[i], sizes[i]);
    }
    one->outcome.outputs = outputs;
    one->state = JOB_ON_DEVICE;
    return one;
}

static int set_up(void **state) {
    folder = scratch_create();
    uploaded_count = 0;
    const struct blobs_options store = {.dir = folder, .bytes_max = BLOB_BYTES};
    assert_int_equal(blobs_create(&store, &blobs, &err), ERR_OK);
    const struct uploader_options options = {.blobs = blobs,
        .inline_bytes_max = INLINE_BYTES,
        .queue_length = 8,
        .on_uploaded = note_uploaded};
    assert_int_equal(uploader_start(&options, &uploader, &err), ERR_OK);
    return 0;
}

static int tear_down(void **state) {
    uploader_stop(uploader);
    uploader = NULL;
    blobs_destroy(blobs);
    scratch_remove(folder);
    if (job != NULL) upload_end(job);
    job_destroy(job);
    job = NULL;
    return 0;
}

/* All that was pushed comes back before the uploader has stopped. */
static void finish(void) {
    uploader_stop(uploader);
    uploader = NULL;
}

static bool is_stored(const struct digest *digest, size_t size) {
    struct blob blob;
    bool is_there = blob_open(blobs, digest, size, &blob, &err) == ERR_OK;
    if (is_there) blob_fini(&blob);
    return is_there;
}

TEST(a_job_is_wanted_where_an_output_has_more_bytes_than_a_result_takes) {
    job = job_with(INLINE_BYTES, 0, INLINE_BYTES, 1);
    assert_false(uploader_wants(uploader, job));
    outputs[3].size = INLINE_BYTES + 1;
    assert_true(uploader_wants(uploader, job));
    assert_false(uploader_wants(NULL, job));
    job->outcome.code = ERR_BAD_LAUNCH;
    assert_false(uploader_wants(uploader, job));
}

TEST(large_outputs_are_stored_by_their_digest_and_small_ones_stay) {
    job = job_with(9, 8, 64, 0);
    assert_int_equal(uploader_push(uploader, job, &err), ERR_OK);
    finish();
    assert_int_equal(uploaded_count, 1);
    assert_ptr_equal(uploaded[0], job);
    assert_int_equal(job->outcome.code, ERR_OK);
    for (size_t i = 0; i < OUTPUTS; i += 2) {
        struct digest digest = digest_of(slice_of(bytes[i], outputs[i].size));
        assert_non_null(upload_digest(job, i));
        assert_true(digest_equal(upload_digest(job, i), &digest));
        assert_true(is_stored(&digest, outputs[i].size));
        assert_null(upload_digest(job, i + 1));
    }
    struct digest small = digest_of(slice_of(bytes[1], 8));
    assert_false(is_stored(&small, 8));
}

TEST(outputs_that_have_a_room_are_not_copied) {
    job = job_with(9, 8, 64, 10);
    job->room.data = bytes[0];
    assert_int_equal(uploader_push(uploader, job, &err), ERR_OK);
    finish();
    for (size_t i = 0; i < OUTPUTS; i++) assert_ptr_equal(job->outcome.outputs[i].data, bytes[i]);
    assert_non_null(upload_digest(job, 2));
}

TEST(the_outputs_are_copied_before_the_lane_has_its_memory_back) {
    job = job_with(9, 8, 64, 10);
    assert_int_equal(uploader_push(uploader, job, &err), ERR_OK);
    for (size_t i = 0; i < OUTPUTS; i++) memset(bytes[i], 0, sizeof bytes[i]);
    finish();
    for (size_t i = 0; i < OUTPUTS; i++) {
        assert_int_equal(job->outcome.outputs[i].size, outputs[i].size);
        memset(bytes[i], (int)('a' + i), sizeof bytes[i]);
        assert_memory_equal(job->outcome.outputs[i].data, bytes[i], outputs[i].size);
    }
}

TEST(a_job_is_uploading_until_its_owner_ends_the_upload) {
    job = job_with(9, 8, 64, 10);
    assert_int_equal(uploader_push(uploader, job, &err), ERR_OK);
    assert_int_equal(job->state, JOB_UPLOADING);
    finish();
    assert_non_null(job->upload);
    upload_end(job);
    assert_null(job->upload);
    assert_null(job->outcome.outputs);
    assert_null(upload_digest(job, 0));
}

TEST(ending_an_upload_that_never_was_leaves_the_outputs) {
    job = job_with(1, 1, 1, 1);
    upload_end(job);
    assert_ptr_equal(job->outcome.outputs, outputs);
    assert_null(upload_digest(job, 0));
}

TEST(the_first_output_that_the_store_refuses_fails_the_job_and_the_rest_is_not_tried) {
    job = job_with(9, 8, BLOB_BYTES + 1, 10);
    assert_int_equal(uploader_push(uploader, job, &err), ERR_OK);
    finish();
    assert_int_equal(uploaded_count, 1);
    assert_int_equal(job->outcome.code, ERR_TOO_LARGE);
    assert_int_equal(job->outcome.err.code, ERR_TOO_LARGE);
    assert_non_null(upload_digest(job, 0));
    assert_null(upload_digest(job, 2));
    assert_null(upload_digest(job, 3));
    struct digest last = digest_of(slice_of(bytes[3], 10));
    assert_false(is_stored(&last, 10));
}

TEST(stopping_uploads_all_that_was_pushed) {
    struct job *jobs[6];
    for (size_t i = 0; i < 6; i++) {
        jobs[i] = job_with(9 + i, 8, 64, 10);
        assert_int_equal(uploader_push(uploader, jobs[i], &err), ERR_OK);
    }
    finish();
    assert_int_equal(uploaded_count, 6);
    for (size_t i = 0; i < 6; i++) {
        struct digest digest = digest_of(slice_of(bytes[0], 9 + i));
        assert_true(digest_equal(upload_digest(jobs[i], 0), &digest));
        assert_true(is_stored(&digest, 9 + i));
        upload_end(jobs[i]);
        job_destroy(jobs[i]);
    }
}

#define U(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(U(a_job_is_wanted_where_an_output_has_more_bytes_than_a_result_takes),
    U(large_outputs_are_stored_by_their_digest_and_small_ones_stay),
    U(outputs_that_have_a_room_are_not_copied),
    U(the_outputs_are_copied_before_the_lane_has_its_memory_back),
    U(a_job_is_uploading_until_its_owner_ends_the_upload),
    U(ending_an_upload_that_never_was_leaves_the_outputs),
    U(the_first_output_that_the_store_refuses_fails_the_job_and_the_rest_is_not_tried),
    U(stopping_uploads_all_that_was_pushed))

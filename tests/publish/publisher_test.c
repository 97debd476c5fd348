/* What the publisher does with answers beside the ladder (ladder_test.c): when a
 * job is over, in which order, and what is left where the sink or the blob store fails. */
#include "publisher_rig.h"

#include <stdio.h>

static const struct slice large = {zeroes, INLINE_BYTES + 1}, too_large = {zeroes, BLOB_BYTES + 1};

/* So that what is allocated for the job from now on takes a block of its own. */
static void use_up_memory(struct job *job) {
    assert_non_null(arena_alloc_beyond(&job->arena, job->arena.left));
    assert_int_equal(job->arena.left, 0);
}

static const char *header_of(const struct record *record, const char *name) {
    static char text[64];
    text[0] = 0;
    for (size_t i = 0; i < record->header_count; i++)
        if (slice_is_text(record->headers[i].name, name))
            snprintf(text, sizeof text, "%.*s", SLICE_TEXT(record->headers[i].value));
    return text;
}

/* --- encoding --- */

TEST(what_a_job_is_answered_with_is_there_once_it_is_encoded) {
    struct job *well = encoded_job(ERR_OK), *failed = encoded_job(ERR_BAD_LAUNCH),
               *cancelled = encoded_job(ERR_CANCELLED);
    assert_int_equal(rig->encoded_count, 3);
    assert_ptr_equal(well->unsent[0], well->result);
    assert_null(well->unsent[1]);
    assert_false(well->has_letter);
    assert_ptr_equal(failed->unsent[0], failed->result);
    assert_int_equal(failed->unsent[1]->record.route, ROUTE_DEAD_LETTER);
    assert_true(failed->has_letter);
    assert_non_null(cancelled->unsent[0]);
    assert_null(cancelled->unsent[1]);
    struct job *jobs[] = {well, failed, cancelled};
    publisher_push(rig->publisher, jobs, 3);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(an_error_has_room_where_nothing_was_reserved_however_long_its_texts_and_its_id) {
    static char id[5000];
    bool is_encoded;
    memset(id, 'i', sizeof id);
    struct job *job = test_job(job_yaml);
    job->id = slice_of(id, sizeof id);
    job->outcome.code = error_set(&job->outcome.err, ERR_BAD_LAUNCH, 0, "do", "failed");
    memset(job->outcome.err.message, 'm', sizeof job->outcome.err.message - 1);
    memset(job->outcome.err.fix, 'f', sizeof job->outcome.err.fix - 1);
    assert_null(job->result);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(is_encoded);
    publisher_push(rig->publisher, &job, 1);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(a_result_that_is_larger_than_its_room_stays_the_callers_and_is_not_counted) {
    bool is_encoded = true;
    struct job *job = finished_job(&small, ERR_OK);
    assert_int_equal(publisher_reserve(job, NULL, 16, false, &err), ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_INTERNAL);
    assert_false(is_encoded);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
}

/* --- pushing --- */

TEST(jobs_leave_their_key_queues_in_the_order_in_which_they_are_pushed) {
    struct job *jobs[3] = {encoded_job(ERR_OK), encoded_job(ERR_OK), encoded_job(ERR_OK)};
    struct key_queue *const queues[] = {
        (struct key_queue *)&jobs[0], NULL, (struct key_queue *)&jobs[2]};
    for (size_t i = 0; i < 3; i++) jobs[i]->key_queue = queues[i];
    jobs[1]->delivery->is_suspect = true;
    publisher_push(rig->publisher, jobs, 3);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->queued_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(rig->queued[i], queues[i]);
        assert_int_equal(rig->are_suspects[i], i == 1);
        assert_null(jobs[i]->key_queue);
        assert_int_equal(jobs[i]->state, JOB_ANSWERED);
    }
}

TEST(more_jobs_than_go_at_once_are_all_answered_and_reported_once_in_order) {
    struct job *jobs[JOBS_MAX];
    for (size_t i = 0; i < JOBS_MAX; i++) jobs[i] = encoded_job(ERR_OK);
    publisher_push(rig->publisher, jobs, JOBS_MAX);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.sent_count, JOBS_MAX);
    assert_int_equal(rig->queued_count, JOBS_MAX);
    assert_int_equal(rig->published_count, JOBS_MAX);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        assert_ptr_equal(rig->published[i], jobs[i]);
        assert_false(jobs[i]->is_lost);
        assert_false(jobs[i]->is_dropped);
    }
}

TEST(a_job_is_over_when_the_last_of_its_answers_is_acknowledged) {
    hold();
    struct job *job = encoded_job(ERR_BAD_LAUNCH);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 2);
    assert_int_equal(rig->sink.sent[0]->route, ROUTE_RESULT);
    assert_int_equal(rig->sink.sent[1]->route, ROUTE_DEAD_LETTER);
    assert_false(rig->sink.sent[0]->is_last);
    assert_true(rig->sink.sent[1]->is_last);
    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(rig->sink.sent[i]->answers, &job->delivery->position);
    settle_next(1, ERR_OK);
    wait_until(&rig->sink.next, 1);
    struct job *behind = encoded_job(ERR_OK); /* once it is sent, the one is settled for good */
    publisher_push(rig->publisher, &behind, 1);
    wait_until(&rig->sink.sent_count, 3);
    pthread_mutex_lock(&rig->lock);
    assert_int_equal(rig->published_count, 0);
    assert_int_equal(rig->sink.settled_calls, 0);
    rig->answer_count = 1;
    pthread_mutex_unlock(&rig->lock);
    wait_until(&rig->published_count, 1);
    assert_ptr_equal(rig->published[0], job);
    settle_next(1, ERR_OK);
    wait_until(&rig->published_count, 2);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.settled_calls, 1); /* not while `behind` was open */
}

/* --- where it goes wrong --- */

TEST(what_others_answer_by_now_is_dropped_and_the_run_goes_on) {
    hold();
    struct job *job = encoded_job(ERR_OK), *next = encoded_job(ERR_OK);
    settle_next(1, ERR_REVOKED);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->published_count, 1);
    assert_true(job->is_dropped);
    assert_false(job->is_lost);
    settle_next(1, ERR_OK);
    publisher_push(rig->publisher, &next, 1);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 2);
    assert_false(next->is_dropped);
    assert_int_equal(rig->failed_count, 0);
}

TEST(a_lost_sink_ends_once_and_what_comes_later_is_lost_unsent) {
    hold();
    struct job *jobs[] = {encoded_job(ERR_OK), encoded_job(ERR_OK), encoded_job(ERR_OK)};
    settle_next(1, ERR_BROKER);
    publisher_push(rig->publisher, jobs, 2);
    wait_until(&rig->failed_count, 1);
    wait_until(&rig->published_count, 2);
    publisher_push(rig->publisher, &jobs[2], 1);
    wait_until(&rig->published_count, 3);
    assert_int_equal(stop(-1), ERR_OK); /* on_failed has told */
    assert_int_equal(rig->failed_count, 1);
    assert_int_equal(rig->failure.code, ERR_BROKER);
    assert_int_equal(rig->sink.sent_count, 2);
    assert_int_equal(rig->sink.settled_calls, 0);
    for (size_t i = 0; i < 3; i++) assert_true(jobs[i]->is_lost);
}

TEST(a_refused_result_that_there_is_no_memory_to_replace_is_lost_and_fails_the_run) {
    hold();
    struct job *job = encoded_job(ERR_OK);
    use_up_memory(job);
    rig->is_memory_short = true;
    settle_next(1, ERR_PUBLISH_REFUSED);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->failed_count, 1);
    wait_until(&rig->published_count, 1);
    assert_int_equal(stop(-1), ERR_OK); /* on_failed has told */
    assert_true(job->is_lost);
    assert_int_equal(rig->sink.sent_count, 1);
}

TEST(a_letter_that_there_is_no_memory_for_leaves_the_job_to_its_caller) {
    bool is_encoded;
    struct job *job = finished_job(&small, ERR_BAD_LAUNCH);
    use_up_memory(job);
    allocation_faults_arm(1);
    enum err code = publisher_encode(rig->publisher, job, &is_encoded, &err);
    assert_true(allocation_faults_end());
    assert_int_equal(code, ERR_NO_MEMORY);
    assert_false(is_encoded);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(stopping_gives_up_when_its_time_is_over_and_what_is_left_is_lost) {
    hold();
    rig->sink.flush_code = ERR_TIMEOUT;
    struct job *job = encoded_job(ERR_OK);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 1);
    assert_int_equal(stop(0), ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "within 0 ms"));
    assert_int_equal(rig->failed_count, 0);
    assert_int_equal(rig->published_count, 1);
    assert_true(rig->published[0]->is_lost);
}

TEST(stopping_says_what_the_sink_says) {
    rig->sink.flush_code = ERR_BROKER;
    assert_int_equal(stop(-1), ERR_BROKER);
    assert_string_equal(err.message, "not acknowledged");
}

TEST(stopping_waits_for_what_is_held) {
    hold();
    struct job *job = encoded_job(ERR_OK);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 1);
    settle_next(1, ERR_OK);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 1);
    assert_false(job->is_lost);
    assert_int_equal(publisher_stop(NULL, -1, &err), ERR_OK);
}

/* --- outputs that go to the blob store --- */

TEST(a_job_whose_outputs_are_too_large_is_answered_when_they_are_stored) {
    bool is_encoded = true;
    struct job *job = finished_job(&large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_false(is_encoded);
    wait_until(&rig->published_count, 1);
    assert_int_equal(rig->encoded_count, 1);
    assert_null(job->upload);
    struct slice payload = job->result->record.payload;
    char digest[DIGEST_TEXT_SIZE];
    struct digest expected = digest_of(large);
    assert_non_null(
        memmem(payload.data, payload.size, digest_format(&expected, digest), DIGEST_TEXT_SIZE - 1));
    struct blob blob;
    assert_int_equal(blob_open(rig->blobs, &expected, large.size, &blob, &err), ERR_OK);
    blob_fini(&blob);
    assert_string_equal(header_of(&job->result->record, "gpu-worker-status"), "ok");
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(a_job_whose_outputs_the_store_refuses_comes_back_unanswered_with_the_reason) {
    bool is_encoded;
    struct job *job = finished_job(&too_large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    wait_until(&rig->not_uploaded_count, 1);
    assert_ptr_equal(rig->not_uploaded, job);
    assert_int_equal(job->outcome.code, ERR_TOO_LARGE);
    assert_null(job->upload);
    assert_null(job->unsent[0]);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 0);
}

TEST(a_job_without_memory_for_outputs_on_their_way_to_the_store_comes_back_unanswered) {
    bool is_encoded = true;
    struct job *job = finished_job(&large, ERR_OK);
    allocation_faults_arm(1);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(allocation_faults_end());
    assert_false(is_encoded);
    assert_int_equal(rig->not_uploaded_count, 1);
    assert_ptr_equal(rig->not_uploaded, job);
    assert_int_equal(job->outcome.code, ERR_NO_MEMORY);
    assert_false(job->has_letter);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(stopping_waits_for_outputs_on_their_way_to_the_store) {
    bool is_encoded;
    struct job *job = finished_job(&large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 1);
    assert_int_equal(rig->sink.sent_count, 1);
}

RUN_TESTS(P(what_a_job_is_answered_with_is_there_once_it_is_encoded),
    P(an_error_has_room_where_nothing_was_reserved_however_long_its_texts_and_its_id),
    P(a_result_that_is_larger_than_its_room_stays_the_callers_and_is_not_counted),
    P(jobs_leave_their_key_queues_in_the_order_in_which_they_are_pushed),
    P(more_jobs_than_go_at_once_are_all_answered_and_reported_once_in_order),
    P(a_job_is_over_when_the_last_of_its_answers_is_acknowledged),
    P(what_others_answer_by_now_is_dropped_and_the_run_goes_on),
    P(a_lost_sink_ends_once_and_what_comes_later_is_lost_unsent),
    P(a_refused_result_that_there_is_no_memory_to_replace_is_lost_and_fails_the_run),
    P(a_letter_that_there_is_no_memory_for_leaves_the_job_to_its_caller),
    P(stopping_gives_up_when_its_time_is_over_and_what_is_left_is_lost),
    P(stopping_says_what_the_sink_says), P(stopping_waits_for_what_is_held),
    P(a_job_whose_outputs_are_too_large_is_answered_when_they_are_stored),
    P(a_job_whose_outputs_the_store_refuses_comes_back_unanswered_with_the_reason),
    P(a_job_without_memory_for_outputs_on_their_way_to_the_store_comes_back_unanswered),
    P(stopping_waits_for_outputs_on_their_way_to_the_store))

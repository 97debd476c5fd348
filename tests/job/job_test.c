/* Proves: a job moves only as the table of states says, and every state leads to its end; it keeps
 * its message, apart from what is allocated for it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/job.h"
#include "testing.h"

static struct job *job_in(enum job_state state) {
    static const struct delivery message = {.position = {.topic = "jobs"}};
    struct job *job = job_create(delivery_create(&message));
    assert_non_null(job);
    job->state = state;
    return job;
}

/* Whether a process of its own survives the move. */
static bool may_move(enum job_state from, enum job_state to) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        job_move(job_in(from), to);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) assert_int_equal(WTERMSIG(status), SIGABRT);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(a_job_goes_the_whole_way_and_ends) {
    static const enum job_state way[] = {JOB_DECODED, JOB_WAITING_FOR_KEY, JOB_DECODED,
        JOB_PREPARING, JOB_READY, JOB_ON_DEVICE, JOB_RETRYING, JOB_DECODED, JOB_PREPARING,
        JOB_READY, JOB_ON_DEVICE, JOB_UPLOADING, JOB_ANSWERED};
    struct job *job = job_in(JOB_TAKEN);
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        job_move(job, way[i]);
        assert_int_equal(job->state, way[i]);
    }
    job_destroy(job);
}

TEST(every_state_but_the_last_may_end_and_none_follows_the_end) {
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        assert_int_equal(may_move(from, JOB_OVER), from != JOB_OVER);
        assert_false(may_move(JOB_OVER, from));
    }
}

TEST(an_answered_job_is_neither_run_nor_tried_again) {
    for (enum job_state from = 0; from < JOB_OVER; from++)
        assert_false(may_move(JOB_ANSWERED, from));
}

TEST(nothing_reaches_the_device_without_having_been_ready) {
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++)
        assert_int_equal(may_move(from, JOB_ON_DEVICE), from == JOB_READY);
}

TEST(a_way_that_the_table_does_not_have_ends_the_process) {
    assert_false(may_move(JOB_TAKEN, JOB_READY));
    assert_false(may_move(JOB_WAITING_FOR_KEY, JOB_PREPARING));
    assert_false(may_move(JOB_RETRYING, JOB_ANSWERED));
}

static void count_end(void *lender) {
    (*(int *)lender)++;
}

TEST(a_job_keeps_its_message_whatever_its_size_and_what_is_allocated_for_it) {
    static uint8_t bytes[2 * JOB_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7 + 1);
    for (size_t size = 0; size < sizeof bytes; size += 97) {
        int ends = 0;
        const struct delivery message = {
            .payload = slice_of(bytes, size), .has_key = true, .key = slice_of_text("the key")};
        const struct loan loan = {.end = count_end, .lender = &ends, .holds_bytes = SIZE_MAX};
        struct job *job = job_create(delivery_lend(&message, loan));
        assert_non_null(job);
        assert_int_equal(ends, 1);
        job_init_arena(job, 1 << 20);
        for (size_t used = 0; used < 2 * JOB_BYTES; used += 100)
            memset(arena_alloc(&job->arena, 1, 100), 0xff, 100);
        assert_true(slice_equal(job->delivery->payload, message.payload));
        assert_true(slice_equal(job->delivery->key, message.key));
        assert_ptr_not_equal(job->delivery->payload.data, bytes);
        job_destroy(job);
        assert_int_equal(ends, 1);
    }
}

TEST(a_large_message_stays_lent_until_its_job_is_over) {
    static uint8_t bytes[1 << 20];
    int ends = 0;
    const struct delivery message = {.payload = slice_of(bytes, sizeof bytes)};
    const struct loan loan = {
        .end = count_end, .lender = &ends, .holds_bytes = sizeof bytes + sizeof bytes / 8};
    struct job *job = job_create(delivery_lend(&message, loan));
    assert_non_null(job);
    assert_ptr_equal(job->delivery->payload.data, bytes);
    assert_int_equal(ends, 0);
    job_destroy(job);
    assert_int_equal(ends, 1);
}

RUN_TESTS(T(a_job_goes_the_whole_way_and_ends),
    T(every_state_but_the_last_may_end_and_none_follows_the_end),
    T(an_answered_job_is_neither_run_nor_tried_again),
    T(nothing_reaches_the_device_without_having_been_ready),
    T(a_way_that_the_table_does_not_have_ends_the_process),
    T(a_job_keeps_its_message_whatever_its_size_and_what_is_allocated_for_it),
    T(a_large_message_stays_lent_until_its_job_is_over))

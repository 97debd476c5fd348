/* Proves: counts outlive who made them; what a damaged writer leaves is bounded; no program or
 * failure grows without end. */
#include "metrics/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "metrics/accounting.h"
#include "testing.h"

static struct board *board;
static int fd;

static int set_up(void **state) {
    struct error err;
    assert_int_equal(board_create(&board, &fd, &err), ERR_OK);
    return 0;
}

static int tear_down(void **state) {
    board_destroy(board);
    close(fd);
    return 0;
}

/* A job that came a second ago, and whose outputs were there half a second later. */
static void answer(struct ledger *ledger, const char *program, enum err code, int64_t offset) {
    uint64_t now_ns = clock_ns() + 2000000000;
    struct delivery delivery = {.position = {.topic = "jobs", .partition = 2, .offset = offset},
        .received_ns = now_ns - 1000000000};
    struct job job = {.delivery = &delivery, .id = slice_of_text("an id"), .has_letter = code != 0};
    job.outcome.code = code;
    job.outcome.telemetry.wall_ns = 500000000;
    snprintf(job.outcome.err.message, sizeof job.outcome.err.message, "what %d", (int)offset);
    if (ledger != NULL) ledger_note_answer(ledger, program, &job);
    else account_answer(board, &job, program, now_ns);
}

TEST(a_board_outlives_the_process_that_counts_on_it) {
    for (int life = 0; life < 2; life++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct error err;
            struct board *mapped;
            if (board_map(fd, &mapped, &err) != ERR_OK) _exit(1);
            counters_add(&mapped->counters, COUNTER_batches_count, 20);
            ledger_note_retry(&mapped->ledger, ERR_IO);
            answer(&mapped->ledger, "saxpy", ERR_OK, life);
            abort();
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
    }
    struct totals totals;
    counters_read(&board->counters, &totals);
    assert_int_equal(totals.of[COUNTER_batches_count], 40);
    assert_int_equal(board->ledger.retries[ERR_IO], 2);
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    assert_true(ledger_read_program(&board->ledger, 1, name, outcomes));
    assert_int_equal(outcomes[ERR_OK], 2);
}

TEST(no_process_can_take_the_memory_away_and_no_other_memory_is_taken) {
    struct error err;
    struct board *mapped = NULL;
    assert_int_equal(ftruncate(fd, 0), -1);
    int other = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(board_map(other, &mapped, &err), ERR_CONFIG);
    assert_int_equal(board_map(-1, &mapped, &err), ERR_CONFIG);
    assert_null(mapped);
    close(other);
}

TEST(answers_are_counted_by_program_and_code_with_their_times) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    struct histogram_reading reading;
    answer(NULL, "saxpy", ERR_OK, 1);
    answer(NULL, "saxpy", ERR_OK, 2);
    answer(NULL, "", ERR_BAD_MESSAGE, 3);
    assert_true(ledger_read_program(&board->ledger, 0, name, outcomes));
    assert_string_equal(name, "");
    assert_int_equal(outcomes[ERR_BAD_MESSAGE], 1);
    assert_true(ledger_read_program(&board->ledger, 1, name, outcomes));
    assert_string_equal(name, "saxpy");
    assert_int_equal(outcomes[ERR_OK], 2);
    assert_false(ledger_read_program(&board->ledger, 2, name, outcomes));
    assert_int_equal(board->ledger.dead_letters[ERR_BAD_MESSAGE], 1);
    counters_read_histogram(&board->counters, HISTOGRAM_total, &reading);
    assert_int_equal(reading.sum, 3000000000);
    assert_int_equal(reading.buckets[13], 3); /* up to a second, with it */
    counters_read_histogram(&board->counters, HISTOGRAM_publish, &reading);
    assert_int_equal(reading.sum, 1500000000);
    assert_int_equal(reading.buckets[12], 3);
    counters_read_histogram(&board->counters, HISTOGRAM_queue, &reading);
    assert_int_equal(reading.sum, 0);
}

TEST(every_value_has_a_bucket) {
    struct histogram_reading reading;
    const struct histogram_info *info = &histogram_infos[HISTOGRAM_batch_jobs];
    for (uint64_t value = 0; value <= 1025; value++)
        counters_observe(&board->counters, HISTOGRAM_batch_jobs, value);
    counters_observe(&board->counters, HISTOGRAM_batch_jobs, UINT64_MAX / 2);
    counters_read_histogram(&board->counters, HISTOGRAM_batch_jobs, &reading);
    for (size_t i = 0; i < info->bound_count; i++)
        assert_int_equal(reading.buckets[i], info->bounds[i] - (i > 0 ? info->bounds[i - 1] : 0));
    assert_int_equal(reading.buckets[info->bound_count], 2);
}

TEST(batches_count_by_kind) {
    struct totals totals;
    const struct batch_telemetry alone = {.jobs = 1, .launches = 3, .sync_points = 1},
                                 batched = {.jobs = 5, .launches = 5, .sync_points = 1},
                                 coalesced = {.jobs = 9,
                                     .launches = 3,
                                     .coalesced_launches = 2,
                                     .sync_points = 1};
    account_batch(&board->counters, &alone, false);
    account_batch(&board->counters, &batched, false);
    account_batch(&board->counters, &coalesced, false);
    counters_read(&board->counters, &totals);
    assert_int_equal(totals.of[COUNTER_kinds_launches_alone], 3);
    assert_int_equal(totals.of[COUNTER_kinds_launches_batched], 6);
    assert_int_equal(totals.of[COUNTER_kinds_launches_coalesced], 2);
    assert_int_equal(totals.of[COUNTER_kinds_sync_points_alone], 1);
    assert_int_equal(totals.of[COUNTER_kinds_sync_points_batched], 1);
    assert_int_equal(totals.of[COUNTER_kinds_sync_points_coalesced], 1);
}

TEST(programs_beyond_the_last_place_share_it) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "program-%d", i);
        answer(&board->ledger, name, ERR_OK, i);
    }
    assert_true(ledger_read_program(&board->ledger, LEDGER_PROGRAMS_MAX - 2, name, outcomes));
    assert_string_equal(name, "program-61");
    assert_int_equal(outcomes[ERR_OK], 1);
    assert_true(ledger_read_program(&board->ledger, LEDGER_PROGRAMS_MAX - 1, name, outcomes));
    assert_string_equal(name, LEDGER_OTHER);
    assert_int_equal(outcomes[ERR_OK], 138);
    assert_false(ledger_read_program(&board->ledger, LEDGER_PROGRAMS_MAX, name, outcomes));
}

TEST(programs_whose_names_differ_beyond_the_cut_share_a_place) {
    char name[2 * LEDGER_NAME_BYTES], shown[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%0*d", LEDGER_NAME_BYTES, i);
        answer(&board->ledger, name, ERR_OK, i);
    }
    assert_true(ledger_read_program(&board->ledger, 1, shown, outcomes));
    assert_int_equal(strlen(shown), LEDGER_NAME_BYTES - 1);
    assert_int_equal(outcomes[ERR_OK], 2);
}

TEST(the_last_failures_are_kept_and_no_older_ones) {
    struct ledger_failure failure;
    for (int i = 1; i <= 40; i++) answer(&board->ledger, "p", ERR_BAD_JOB, i);
    assert_int_equal(board->ledger.failure_count, 40);
    assert_false(ledger_read_failure(&board->ledger, 40 - LEDGER_FAILURES, &failure));
    assert_false(ledger_read_failure(&board->ledger, 41, &failure));
    assert_true(ledger_read_failure(&board->ledger, 40, &failure));
    assert_int_equal(failure.code, ERR_BAD_JOB);
    assert_int_equal(failure.offset, 40);
    assert_string_equal(failure.id, "an id");
    assert_string_equal(failure.message, "what 40");
}

/* As a kernel that writes anywhere might. */
TEST(a_board_that_is_damaged_is_read_within_its_bounds) {
    struct panel_view *view = malloc(sizeof *view);
    struct ledger_failure failure;
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    memset(board, 0xff, sizeof *board);
    assert_true(panel_read(&board->panel, view));
    assert_int_equal(view->partition_count, PANEL_PARTITIONS_MAX);
    for (uint32_t i = 0; i < view->partition_count; i++)
        assert_true(strlen(view->partitions[i].topic) < PANEL_TOPIC_BYTES);
    assert_true(ledger_read_failure(&board->ledger, UINT64_MAX, &failure));
    assert_true(strlen(failure.message) < sizeof failure.message);
    uint32_t count = 0;
    while (ledger_read_program(&board->ledger, count, name, outcomes)) count++;
    assert_int_equal(count, LEDGER_PROGRAMS_MAX);
    free(view);
}

TEST(the_life_after_the_one_that_damaged_it_counts_within_its_bounds) {
    uint64_t outcomes[ERR_COUNT];
    char name[LEDGER_NAME_BYTES];
    memset(board, 0xff, sizeof *board);
    for (int i = 1; i <= 20; i++) answer(NULL, "saxpy", ERR_BAD_JOB, i);
    assert_true(ledger_read_program(&board->ledger, LEDGER_PROGRAMS_MAX - 1, name, outcomes));
    assert_int_equal(outcomes[ERR_BAD_JOB], 19); /* the damaged count was -1 */
}

TEST(a_panel_shows_what_was_shown_and_not_what_is_being_written) {
    struct panel_view *view = malloc(sizeof *view);
    assert_false(panel_read(&board->panel, view));
    panel_begin(&board->panel)->gauges.residents = 1;
    assert_false(panel_read(&board->panel, view));
    panel_show(&board->panel);
    panel_begin(&board->panel)->gauges.residents = 2;
    assert_true(panel_read(&board->panel, view));
    assert_int_equal(view->gauges.residents, 1);
    panel_show(&board->panel);
    assert_true(panel_read(&board->panel, view));
    assert_int_equal(view->gauges.residents, 2);
    free(view);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(a_board_outlives_the_process_that_counts_on_it),
    F(no_process_can_take_the_memory_away_and_no_other_memory_is_taken),
    F(answers_are_counted_by_program_and_code_with_their_times), F(every_value_has_a_bucket),
    F(batches_count_by_kind), F(programs_beyond_the_last_place_share_it),
    F(programs_whose_names_differ_beyond_the_cut_share_a_place),
    F(the_last_failures_are_kept_and_no_older_ones),
    F(a_board_that_is_damaged_is_read_within_its_bounds),
    F(the_life_after_the_one_that_damaged_it_counts_within_its_bounds),
    F(a_panel_shows_what_was_shown_and_not_what_is_being_written))

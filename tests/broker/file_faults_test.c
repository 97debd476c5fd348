/* A run of files each of whose calls fails in turn: the run ends with an error that says what to
 * do, and the next one goes on, so that each message has its answers once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/file_sink.h"
#include "broker/file_source.h"
#include "support/io_faults.h"
#include "support/scratch.h"
#include "testing.h"

enum {
    MESSAGES = 600,
    MESSAGE_BYTES = 4000,
    LETTER_EVERY = 7,  /* messages that have a dead letter as well */
    SERVE_EVERY = 100, /* messages between two writes, at least */
    CALLS_MAX = 200
};

struct fixture {
    char *folder;
    char jobs[256], results[256], letters[256];
    _Alignas(64) uint8_t room[FILE_PROGRESS_BYTES];
};

/* One process's part of it. */
struct life {
    struct file_progress *progress;
    struct source *source;
    struct sink *sink;
    size_t unsettled;
    struct error failure; /* ERR_OK: none */
};

struct answer {
    struct record records[2]; /* the first member: on_settled() finds the rest by it */
    struct life *life;
    struct delivery *delivery;
    size_t unsettled;
    char text[32];
};

/* ---- files ---- */

static int set_up(void **state) {
    static uint8_t payload[MESSAGE_BYTES];
    struct fixture *fixture = aligned_alloc(64, (sizeof *fixture + 63) / 64 * 64);
    assert_non_null(fixture);
    memset(fixture, 0, sizeof *fixture);
    fixture->folder = scratch_create();
    snprintf(fixture->jobs, sizeof fixture->jobs, "%s/jobs", fixture->folder);
    snprintf(fixture->results, sizeof fixture->results, "%s/results", fixture->folder);
    snprintf(fixture->letters, sizeof fixture->letters, "%s/letters", fixture->folder);
    FILE *jobs = fopen(fixture->jobs, "wbe");
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const uint8_t head[3] = {0xc5, MESSAGE_BYTES >> 8, MESSAGE_BYTES & 0xff}; /* bin 16 */
        memcpy(payload, &i, sizeof i);
        assert_int_equal(fwrite(head, 1, sizeof head, jobs), sizeof head);
        assert_int_equal(fwrite(payload, 1, sizeof payload, jobs), sizeof payload);
    }
    assert_int_equal(fclose(jobs), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    io_faults_arm(NULL);
    scratch_remove(fixture->folder);
    free(fixture);
    return 0;
}

static void assert_results_are_the_jobs(const struct fixture *fixture) {
    static char expected[8192], actual[8192];
    FILE *jobs = fopen(fixture->jobs, "rbe"), *results = fopen(fixture->results, "rbe");
    size_t size;
    do {
        size = fread(expected, 1, sizeof expected, jobs);
        assert_int_equal(fread(actual, 1, sizeof actual, results), size);
        assert_memory_equal(actual, expected, size);
    } while (size > 0);
    fclose(jobs);
    fclose(results);
}

static void assert_letters_are_whole(const struct fixture *fixture) {
    char line[256], expected[64];
    FILE *letters = fopen(fixture->letters, "rbe");
    for (int i = 0; i < MESSAGES; i += LETTER_EVERY) {
        assert_non_null(fgets(line, sizeof line, letters));
        snprintf(expected, sizeof expected, "\"payload\": \"message %d\"", i);
        assert_non_null(strstr(line, expected));
        assert_int_equal(line[strlen(line) - 1], '\n');
    }
    assert_null(fgets(line, sizeof line, letters));
    fclose(letters);
}

/* ---- a life, as the executor has it ---- */

static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct answer *answer = (struct answer *)(record - (record->route == ROUTE_DEAD_LETTER));
    struct life *life = answer->life;
    if (code != ERR_OK && life->failure.code == ERR_OK) life->failure = *err;
    life->unsettled--;
    if (--answer->unsettled > 0) return;
    if (life->failure.code == ERR_OK) source_finish(life->source, &answer->delivery->position);
    delivery_destroy(answer->delivery);
    free(answer);
}

static void answer_message(struct life *life, struct delivery *delivery) {
    struct answer *answer = calloc(1, sizeof *answer);
    assert_non_null(answer);
    bool has_letter = delivery->position.offset % LETTER_EVERY == 0;
    answer->life = life;
    answer->delivery = delivery;
    answer->unsettled = has_letter ? 2 : 1;
    life->unsettled += answer->unsettled;
    snprintf(answer->text, sizeof answer->text, "message %d", (int)delivery->position.offset);
    answer->records[0] = (struct record){
        .route = ROUTE_RESULT, .payload = delivery->payload, .on_settled = on_settled};
    answer->records[1] = (struct record){.route = ROUTE_DEAD_LETTER,
        .payload = slice_of_text(answer->text),
        .on_settled = on_settled};
    if (has_letter) sink_send(life->sink, &answer->records[1]);
    sink_send(life->sink, &answer->records[0]);
}

static void serve(struct life *life) {
    sink_serve(life->sink, 0);
    if (life->failure.code == ERR_OK && life->unsettled == 0) sink_settled(life->sink);
}

static void run_life(struct life *life) {
    bool at_end = false;
    for (size_t i = 1; !at_end && life->failure.code == ERR_OK; i++) {
        struct delivery *delivery = NULL;
        struct error err;
        if (source_poll(life->source, 0, &delivery, &at_end, &err) != ERR_OK) life->failure = err;
        if (delivery != NULL) answer_message(life, delivery);
        if (at_end || i % SERVE_EVERY == 0) serve(life);
    }
}

/* What ended it; ERR_OK: it has come to its end. */
static struct error live(struct fixture *fixture) {
    struct life life = {.failure = {.code = ERR_OK}};
    struct error err;
    assert_int_equal(file_progress_create(fixture->room, &life.progress, &err), ERR_OK);
    enum err code =
        file_source_create(fixture->jobs, 2 * MESSAGE_BYTES, life.progress, &life.source, &err);
    if (code == ERR_OK)
        code =
            file_sink_create(fixture->results, fixture->letters, life.progress, &life.sink, &err);
    if (code == ERR_OK) run_life(&life);
    else life.failure = err;
    if (life.failure.code == ERR_OK && source_close(life.source, 0, &err) != ERR_OK)
        life.failure = err;
    struct error ret = life.failure;
    sink_destroy(life.sink);
    assert_int_equal(life.unsettled, 0);
    source_destroy(life.source);
    file_progress_destroy(life.progress);
    return ret;
}

/* ---- faults ---- */

static void assert_helps(const struct fixture *fixture, const struct error *err) {
    assert_int_equal(err->code, ERR_IO);
    assert_non_null(strstr(err->message, fixture->folder));
    assert_non_null(strstr(err->message, strerror(err->native)));
    assert_true(err->fix[0] != 0);
}

static void start_anew(struct fixture *fixture) {
    memset(fixture->room, 0, sizeof fixture->room);
    remove(fixture->results);
    remove(fixture->letters);
}

/* Lives with the fault at each of their calls in turn, those before them with the fault `before`;
 * after each of them, one without. */
static void fail_each_call(
    struct fixture *fixture, struct io_faults faults, const struct io_faults *before) {
    uint64_t failures = 0;
    for (faults.nth = 1;; faults.nth++) {
        assert_true(faults.nth < CALLS_MAX);
        start_anew(fixture);
        if (before != NULL) {
            io_faults_arm(before);
            struct error err = live(fixture);
            assert_helps(fixture, &err);
        }
        io_faults_arm(&faults);
        struct error err = live(fixture);
        uint64_t seen = io_faults_seen();
        io_faults_arm(NULL);
        if (err.code != ERR_OK) {
            assert_helps(fixture, &err);
            failures++;
            err = live(fixture);
            assert_int_equal(err.code, ERR_OK);
        }
        assert_results_are_the_jobs(fixture);
        assert_letters_are_whole(fixture);
        if (seen < faults.nth) break;
    }
    bool is_harmless = faults.error < 0 || faults.error == EINTR;
    assert_true(is_harmless || failures == faults.nth - 1);
    if (faults.error < 0) assert_int_equal(failures, 0);
}

static struct io_faults faults_of(const struct fixture *fixture, int error, bool is_once) {
    return (struct io_faults){
        .folder = fixture->folder, .calls = IO_CALLS_ALL, .is_once = is_once, .error = error};
}

TEST(a_call_that_fails_once_loses_and_repeats_nothing) {
    fail_each_call(*state, faults_of(*state, EIO, true), NULL);
}

TEST(a_disk_that_is_full_from_some_call_on_loses_and_repeats_nothing) {
    fail_each_call(*state, faults_of(*state, ENOSPC, false), NULL);
}

TEST(reads_and_writes_that_are_short_or_interrupted_are_gone_on_with) {
    fail_each_call(*state, faults_of(*state, IO_FAULT_SHORT, true), NULL);
    fail_each_call(*state, faults_of(*state, IO_FAULT_SHORT, false), NULL);
    struct io_faults faults = faults_of(*state, EINTR, true);
    faults.calls = 1u << IO_CALL_READ | 1u << IO_CALL_WRITE;
    fail_each_call(*state, faults, NULL);
}

TEST(a_run_that_goes_on_may_fail_as_well) {
    struct io_faults before = faults_of(*state, EIO, false);
    before.calls = 1u << IO_CALL_WRITE;
    before.nth = 5;
    fail_each_call(*state, faults_of(*state, EIO, true), &before);
    fail_each_call(*state, faults_of(*state, ENOSPC, false), &before);
}

TEST(a_file_that_cannot_be_written_leaves_the_others_as_they_are) {
    struct fixture *fixture = *state;
    struct sink *sink;
    struct error err;
    char elsewhere[300];
    snprintf(elsewhere, sizeof elsewhere, "%s/missing/letters", fixture->folder);
    assert_int_equal(file_sink_create(fixture->jobs, elsewhere, NULL, &sink, &err), ERR_IO);
    FILE *jobs = fopen(fixture->jobs, "rbe");
    assert_int_equal(fseek(jobs, 0, SEEK_END), 0);
    assert_int_equal(ftell(jobs), MESSAGES * (MESSAGE_BYTES + 3));
    fclose(jobs);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(a_call_that_fails_once_loses_and_repeats_nothing),
    F(a_disk_that_is_full_from_some_call_on_loses_and_repeats_nothing),
    F(reads_and_writes_that_are_short_or_interrupted_are_gone_on_with),
    F(a_run_that_goes_on_may_fail_as_well),
    F(a_file_that_cannot_be_written_leaves_the_others_as_they_are))

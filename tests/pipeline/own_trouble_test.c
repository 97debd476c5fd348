/* Trouble of the worker's own, here with its blob store, makes no dead letter: jobs wait. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/blob_server.h"
#include "support/io_faults.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

enum { HEALS_AFTER = 25 };

static const float payload[] = {5, 6};

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.retry.max_attempts = 1; /* what fails of its own is answered at once */
    run->settings.retry.base_ms = 1;
    run->settings.retry.max_ms = 2;
    return code;
}

static int tear_down(void **state) {
    io_faults_arm(NULL);
    return run_tear_down(state);
}

/* y' = x + 0, where x is a blob of these two floats. */
static void add_copy(
    struct run *run, const char *id, const float blob[static 2], const char *more) {
    char yaml[768], name[DIGEST_TEXT_SIZE];
    struct digest digest = digest_of(slice_of(blob, sizeof payload));
    snprintf(yaml, sizeof yaml,
        "id: %s\n%sbuffers: {x: {blob: \"%s\", bytes: 8}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        id, more, digest_format(&digest, name));
    run_add_job(run, yaml);
}

static struct blobs *open_store(const char *dir) {
    const struct blobs_options options = {.dir = dir, .bytes_max = 1000};
    struct blobs *blobs;
    struct error err;
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    return blobs;
}

static void put(struct blobs *blobs, const float blob[static 2]) {
    struct slice bytes = slice_of(blob, sizeof payload);
    struct digest digest = digest_of(bytes);
    struct error err;
    assert_int_equal(blobs_put(blobs, &digest, bytes, &err), ERR_OK);
}

/* The folder below `dir` that the payload's file stands in; to be freed. */
static char *shelf_of_payload(const char *dir) {
    char *shelf, name[BLOB_NAME_SIZE];
    struct digest digest = digest_of(slice_of(payload, sizeof payload));
    assert_return_code(asprintf(&shelf, "%s/%.2s", dir, blob_name(&digest, name)), 0);
    return shelf;
}

static void assert_no_dead_letter(struct run *run) {
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
}

/* Every word that left the worker about the job. */
static void assert_not_said(struct run *run, const char *id, const char *secret) {
    static const enum route routes[] = {ROUTE_RESULT, ROUTE_DEAD_LETTER};
    for (size_t i = 0; i < 2; i++) {
        const struct memory_message *message = memory_find(&run->broker, routes[i], id);
        if (message == NULL) continue;
        assert_null(memmem(message->payload.data, message->payload.size, secret, strlen(secret)));
        const char *words = memory_header(message, "dlq.error.message");
        if (words != NULL) assert_null(strstr(words, secret));
    }
}

/* ---- a store behind HTTP that is in trouble, and well again ---- */

struct sick {
    struct blob_server *server;
    unsigned asked;
};

/* In a thread for each GET; one job asks, once at a time. */
static void heal_in_time(void *context) {
    struct sick *sick = context;
    if (++sick->asked == HEALS_AFTER) blob_server_set_mishap(sick->server, MISHAP_NONE);
}

static void assert_waits_for_a_store(struct run *run, enum mishap mishap) {
    char *cache = scratch_create();
    struct sick sick = {.server = blob_server_start()};
    blob_server_add(sick.server, slice_of(payload, sizeof payload));
    blob_server_set_mishap(sick.server, mishap);
    blob_server_set_gate(sick.server, heal_in_time, &sick);
    run_set_text(&run->settings.blobs.url, blob_server_url(sick.server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "waits", payload, "");
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    run_assert_output(run, "waits", 0, payload, sizeof payload);
    assert_no_dead_letter(run);
    assert_true(sick.asked >= HEALS_AFTER);
    blob_server_stop(sick.server);
    scratch_remove(cache);
}

TEST(a_job_waits_for_a_store_that_is_broken) {
    assert_waits_for_a_store(*state, MISHAP_STATUS_500);
}

TEST(a_job_waits_for_a_store_that_takes_no_password) {
    assert_waits_for_a_store(*state, MISHAP_STATUS_403);
}

TEST(a_job_waits_for_a_store_that_hangs_up) {
    assert_waits_for_a_store(*state, MISHAP_CUT);
}

TEST(a_blob_that_the_store_has_not_is_its_senders) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "absent", payload, "");
    run_execute_ok(run);
    run_assert_error(run, "absent", "blob_missing");
    assert_not_said(run, "absent", "127.0.0.1");
    blob_server_stop(server);
    scratch_remove(cache);
}

TEST(a_deadline_ends_the_wait_and_tells_nothing_of_the_store) {
    char *cache = scratch_create(), deadline[64];
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    blob_server_add(server, slice_of(payload, sizeof payload));
    blob_server_set_mishap(server, MISHAP_STATUS_500);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    snprintf(deadline, sizeof deadline, "deadline_ms: %llu\n",
        (unsigned long long)clock_unix_ms() + 300);
    add_copy(run, "late", payload, deadline);
    run_execute_ok(run);
    run_assert_error(run, "late", "deadline_exceeded");
    assert_not_said(run, "late", "127.0.0.1");
    blob_server_stop(server);
    scratch_remove(cache);
}

/* ---- a folder ---- */

/* While other blobs can be read, one that cannot is no trouble of the worker's: its job does not
 * hold up its partition for ever. */
TEST(a_blob_that_alone_cannot_be_read_is_given_up_in_the_end) {
    enum { OTHERS = 2000 };
    char *dir = scratch_create(), *shelf = shelf_of_payload(dir);
    const char *own = shelf + strlen(dir) + 1;
    struct run *run = *state;
    struct blobs *blobs = open_store(dir);
    put(blobs, payload);
    run_set_text(&run->settings.blobs.dir, dir);
    run->settings.limits.jobs_in_flight = 4; /* the others come while it waits */
    add_copy(run, "alone", payload, "");
    unsigned others = 0;
    for (int k = 0; k < OTHERS; k++) {
        const float other[] = {(float)k, 7};
        char id[32], other_name[BLOB_NAME_SIZE];
        struct digest other_digest = digest_of(slice_of(other, sizeof other));
        if (strncmp(blob_name(&other_digest, other_name), own, 2) == 0) continue;
        put(blobs, other);
        snprintf(id, sizeof id, "other-%d", k);
        add_copy(run, id, other, "");
        others++;
    }
    blobs_destroy(blobs);
    const struct io_faults broken = {
        .folder = shelf, .calls = 1 << IO_CALL_READ, .nth = 1, .error = EIO};
    io_faults_arm(&broken);
    run_execute_ok(run);
    run_assert_error(run, "alone", "io");
    assert_not_said(run, "alone", dir);
    assert_not_said(run, "alone", strerror(EIO));
    assert_int_equal(run->summary.ok, others);
    free(shelf);
    scratch_remove(dir);
}

/* As SQLite tests its disk: each call in turn fails once, and every job is answered rightly. */
TEST(whichever_call_fails_once_every_job_is_answered_rightly) {
    static const int errors[] = {ENOSPC, EIO, IO_FAULT_CUT};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        uint64_t nth = 0, seen;
        do {
            void *fresh = NULL;
            char *dir = scratch_create(), *shelf = shelf_of_payload(dir);
            struct blobs *blobs = open_store(dir);
            put(blobs, payload);
            blobs_destroy(blobs);
            set_up(&fresh);
            struct run *run = fresh;
            run_set_text(&run->settings.blobs.dir, dir);
            add_copy(run, "reads", payload, "");
            const struct io_faults fault = {.folder = shelf,
                .calls = IO_CALLS_ALL,
                .nth = ++nth,
                .is_once = true,
                .error = errors[e]};
            io_faults_arm(&fault);
            run_execute_ok(run);
            seen = io_faults_seen();
            /* A file that is cut when it is read has other bytes than its name says. */
            if (errors[e] == IO_FAULT_CUT && seen >= nth)
                run_assert_error(run, "reads", "digest_mismatch");
            else run_assert_output(run, "reads", 0, payload, sizeof payload);
            if (errors[e] != IO_FAULT_CUT) assert_no_dead_letter(run);
            tear_down(&fresh);
            free(shelf);
            scratch_remove(dir);
        } while (seen >= nth);
        assert_true(nth > 1);
    }
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(a_job_waits_for_a_store_that_is_broken),
        S(a_job_waits_for_a_store_that_takes_no_password),
        S(a_job_waits_for_a_store_that_hangs_up),
        S(a_blob_that_the_store_has_not_is_its_senders),
        S(a_deadline_ends_the_wait_and_tells_nothing_of_the_store),
        S(a_blob_that_alone_cannot_be_read_is_given_up_in_the_end),
        cmocka_unit_test(whichever_call_fails_once_every_job_is_answered_rightly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

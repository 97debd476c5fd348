/* Proves: a blob behind HTTP that is larger than memory may have is read in parts, from a file that
 * leaves nothing behind; an output that came in parts is put there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/blob_server.h"
#include "support/io_faults.h"
#include "support/scratch.h"
#include "testing.h"

enum {
    PART_BYTES = 256 << 10,
    BYTES = 2 * PART_BYTES + 1000,
    BLOB_BYTES_MAX = 4096,
    HELD_BYTES_MAX = 8192
};

static char *cache_dir;
static struct blob_server *server;
static struct blobs *blobs;
static struct error err;
static uint8_t payload[BYTES], found[BYTES];
static struct digest digest;

static unsigned not_cached;

static void count_not_cached(void *context, const struct error *why) {
    assert_int_equal(why->code, ERR_IO);
    not_cached++;
}

static void open_store(uint64_t cache_bytes) {
    const struct blobs_options options = {.url = blob_server_url(server),
        .cache_dir = cache_dir,
        .cache_bytes = cache_bytes,
        .bytes_max = BLOB_BYTES_MAX,
        .held_bytes_max = HELD_BYTES_MAX,
        .timeout_ms = 60000,
        .on_not_cached = count_not_cached};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
}

static int set_up(void **state) {
    cache_dir = scratch_create();
    server = blob_server_start();
    for (size_t i = 0; i < BYTES; i++) payload[i] = (uint8_t)(i * 31 + i / 251);
    digest = blob_server_add(server, slice_of(payload, BYTES));
    not_cached = 0;
    open_store(1 << 20);
    return 0;
}

static int tear_down(void **state) {
    io_faults_arm(NULL);
    blobs_destroy(blobs);
    blob_server_stop(server);
    scratch_remove(cache_dir);
    return 0;
}

static void count(void *context, const struct folder_file *file) {
    size_t *counts = context;
    counts[file->is_temp]++;
}

static void assert_files(size_t blobs_kept) {
    size_t counts[2] = {0, 0};
    struct folder folder;
    assert_int_equal(folder_open(&folder, "blobs.cache_dir", cache_dir, 0700, &err), ERR_OK);
    folder_visit(&folder, count, counts);
    folder_close(&folder);
    assert_int_equal(counts[false], blobs_kept);
    assert_int_equal(counts[true], 0);
}

static enum err open_parts(struct blob *ret) {
    return blob_open_parts(blobs, &digest, BYTES, ret, &err);
}

static void assert_readable(const struct blob *blob) {
    memset(found, 0, sizeof found);
    assert_int_equal(blob_read(blob, 0, found, BYTES, &err), ERR_OK);
    assert_memory_equal(found, payload, BYTES);
    assert_int_equal(blob_read(blob, PART_BYTES - 1, found, 2, &err), ERR_OK);
    assert_memory_equal(found, payload + PART_BYTES - 1, 2);
}

TEST(a_blob_that_is_larger_than_memory_may_have_is_fetched_once_and_read_in_parts) {
    struct blob blobs_open[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_parts(&blobs_open[i]), ERR_OK);
        assert_readable(&blobs_open[i]);
    }
    assert_int_equal(blob_server_gets(server), 1);
    for (int i = 0; i < 2; i++) blob_fini(&blobs_open[i]);
    assert_files(1);
    struct blob whole;
    assert_int_equal(blob_open(blobs, &digest, BYTES, &whole, &err), ERR_TOO_LARGE);
    assert_int_equal(not_cached, 0);
}

TEST(a_file_that_the_cache_cannot_name_is_told_and_costs_no_blob) {
    const struct io_faults fault = {
        .folder = cache_dir, .calls = 1 << IO_CALL_RENAME, .nth = 1, .error = EIO};
    struct blob blob;
    io_faults_arm(&fault);
    assert_int_equal(open_parts(&blob), ERR_OK);
    io_faults_arm(NULL);
    assert_int_equal(not_cached, 1);
    assert_files(0);
    assert_readable(&blob);
    blob_fini(&blob);
}

TEST(a_full_disk_below_the_cache_is_told_from_trouble_of_the_store) {
    const struct io_faults fault = {
        .folder = cache_dir, .calls = 1 << IO_CALL_WRITE, .nth = 1, .error = ENOSPC};
    struct blob blob;
    io_faults_arm(&fault);
    assert_int_equal(open_parts(&blob), ERR_IO);
    io_faults_arm(NULL);
    assert_string_equal(err.trouble, BLOBS_DISK_FULL);
    assert_string_equal(blobs_trouble(blobs), BLOBS_DISK_FULL);
    assert_files(0);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_string_equal(blobs_trouble(blobs), "");
    blob_fini(&blob);
}

TEST(a_store_that_answers_says_nothing_of_a_disk_that_is_full) {
    const struct io_faults fault = {
        .folder = cache_dir, .calls = 1 << IO_CALL_WRITE, .nth = 1, .error = ENOSPC};
    const struct digest small = blob_server_add(server, slice_of(payload, 100));
    struct spool *spool;
    struct digest stored;
    struct blob blob;
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    io_faults_arm(&fault);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, BYTES), &err), ERR_IO);
    io_faults_arm(NULL);
    assert_int_equal(blob_open(blobs, &small, 100, &blob, &err), ERR_OK);
    blob_fini(&blob);
    assert_int_equal(blobs_put(blobs, &small, slice_of(payload, 100), &err), ERR_OK);
    assert_string_equal(blobs_trouble(blobs), BLOBS_DISK_FULL);
    blob_server_set_mishaps(server, MISHAP_STATUS_500, 1);
    assert_int_equal(blobs_put(blobs, &small, slice_of(payload, 100), &err), ERR_IO);
    assert_string_equal(err.trouble, BLOBS_TROUBLE);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, BYTES), &err), ERR_OK);
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_OK);
    assert_string_equal(blobs_trouble(blobs), "");
    spool_destroy(spool);
}

TEST(a_blob_over_the_budget_of_the_cache_is_read_and_leaves_no_file) {
    struct blob blob;
    blobs_destroy(blobs);
    open_store(BYTES - 1);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_files(0);
    assert_readable(&blob);
    blob_fini(&blob);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_int_equal(blob_server_gets(server), 2);
    blob_fini(&blob);
}

TEST(what_is_not_the_blob_is_refused_and_leaves_no_file) {
    static const struct {
        enum mishap mishap;
        enum err code;
    } cases[] = {{MISHAP_STATUS_500, ERR_IO}, {MISHAP_WRONG_BYTES, ERR_DIGEST_MISMATCH},
        {MISHAP_TOO_LONG, ERR_DIGEST_MISMATCH}, {MISHAP_ENDLESS, ERR_DIGEST_MISMATCH},
        {MISHAP_CUT, ERR_IO}};
    struct blob blob;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        blob_server_set_mishap(server, cases[i].mishap);
        assert_int_equal(open_parts(&blob), cases[i].code);
        assert_files(0);
    }
    blob_server_set_mishap(server, MISHAP_NONE);
    assert_int_equal(blob_open_parts(blobs, &digest, BYTES + 1, &blob, &err), ERR_DIGEST_MISMATCH);
    digest.bytes[0] ^= 1;
    assert_int_equal(open_parts(&blob), ERR_BLOB_MISSING);
    assert_files(0);
    digest.bytes[0] ^= 1;
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_readable(&blob);
    blob_fini(&blob);
}

TEST(a_blob_that_there_is_no_room_for_is_not_fetched) {
    struct blob others[2], blob;
    for (uint8_t i = 0; i < 2; i++) {
        payload[0] = i;
        struct digest other = blob_server_add(server, slice_of(payload, BLOB_BYTES_MAX));
        assert_int_equal(blob_open(blobs, &other, BLOB_BYTES_MAX, &others[i], &err), ERR_OK);
    }
    payload[0] = 0;
    uint64_t answers = blobs_answers(blobs);
    assert_int_equal(open_parts(&blob), ERR_NO_MEMORY);
    assert_int_equal(blob_server_gets(server), 2);
    assert_int_equal(blobs_answers(blobs), answers);
    blob_fini(&others[0]);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_readable(&blob);
    blob_fini(&blob);
    blob_fini(&others[1]);
}

/* The file and the connection are open: the next descriptor is the one that the blob keeps. Those
 * of the standard streams stay in use, and so many may be waited for. */
static void allow_no_more_files(void *context) {
    struct rlimit *limit = context, less = *limit;
    less.rlim_cur = STDERR_FILENO + 1;
    if (setrlimit(RLIMIT_NOFILE, &less) != 0) abort();
}

TEST(a_file_that_cannot_be_opened_is_trouble_of_the_worker_and_no_fault_of_the_job) {
    struct rlimit limit;
    struct blob blob;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), 0);
    blob_server_set_gate(server, allow_no_more_files, &limit);
    assert_int_equal(open_parts(&blob), ERR_IO);
    assert_non_null(err.trouble);
    assert_string_equal(err.trouble, BLOBS_TROUBLE);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), 0);
    blob_server_set_gate(server, NULL, NULL);
    assert_files(0);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_readable(&blob);
    blob_fini(&blob);
}

TEST(a_file_of_the_cache_that_was_damaged_is_fetched_again) {
    char path[512], name[BLOB_NAME_SIZE];
    struct blob blob;
    assert_int_equal(open_parts(&blob), ERR_OK);
    blob_fini(&blob);
    snprintf(path, sizeof path, "%s/%s", cache_dir, blob_name(&digest, name));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_not_equal(fputc(payload[0] + 1, file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_readable(&blob);
    assert_int_equal(blob_server_gets(server), 2);
    blob_fini(&blob);
}

TEST(an_output_that_came_in_parts_is_put_at_the_store_and_leaves_no_file) {
    struct spool *spool;
    struct digest stored;
    memset(payload + 1000, 0, 50); /* never written */
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    assert_int_equal(
        spool_write(spool, 1050, slice_of(payload + 1050, BYTES - 1050), &err), ERR_OK);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, 1000), &err), ERR_OK);
    blob_server_set_mishaps(server, MISHAP_STATUS_500, 1);
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_IO);
    assert_string_equal(err.trouble, BLOBS_TROUBLE);
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_OK);
    spool_destroy(spool);
    assert_true(blob_server_has(server, slice_of(payload, BYTES)));
    digest = digest_of(slice_of(payload, BYTES));
    assert_true(digest_equal(&stored, &digest));
    assert_files(0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(a_blob_that_is_larger_than_memory_may_have_is_fetched_once_and_read_in_parts),
        F(a_file_that_the_cache_cannot_name_is_told_and_costs_no_blob),
        F(a_full_disk_below_the_cache_is_told_from_trouble_of_the_store),
        F(a_store_that_answers_says_nothing_of_a_disk_that_is_full),
        F(a_blob_over_the_budget_of_the_cache_is_read_and_leaves_no_file),
        F(what_is_not_the_blob_is_refused_and_leaves_no_file),
        F(a_blob_that_there_is_no_room_for_is_not_fetched),
        F(a_file_that_cannot_be_opened_is_trouble_of_the_worker_and_no_fault_of_the_job),
        F(a_file_of_the_cache_that_was_damaged_is_fetched_again),
        F(an_output_that_came_in_parts_is_put_at_the_store_and_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who may write in the folder of blobs changes no byte that was vouched for. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/io_faults.h"
#include "support/scratch.h"
#include "testing.h"

enum { BYTES = 3 << 20 }; /* more than one piece */

static uint8_t payload[BYTES];
static char *dir;
static struct blobs *blobs;
static struct digest digest;
static char path[512];
static struct error err;

static int set_up(void **state) {
    dir = scratch_create();
    for (size_t i = 0; i < BYTES; i++) payload[i] = (uint8_t)(i * 31 >> 8);
    const struct blobs_options options = {.dir = dir, .bytes_max = BYTES};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    digest = digest_of(slice_of(payload, BYTES));
    assert_int_equal(blobs_put(blobs, &digest, slice_of(payload, BYTES), &err), ERR_OK);
    char name[BLOB_NAME_SIZE];
    snprintf(path, sizeof path, "%s/%s", dir, blob_name(&digest, name));
    return 0;
}

static int tear_down(void **state) {
    io_faults_arm(NULL);
    blobs_destroy(blobs);
    scratch_remove(dir);
    return 0;
}

static void open_blob(struct blob *blob) {
    assert_int_equal(blob_open(blobs, &digest, BYTES, blob, &err), ERR_OK);
}

static void assert_whole(const struct blob *blob) {
    assert_int_equal(blob->bytes.size, BYTES);
    assert_memory_equal(blob->bytes.data, payload, BYTES);
}

TEST(a_file_that_is_written_after_it_was_checked_changes_nothing) {
    struct blob blob;
    open_blob(&blob);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "poison", 6, BYTES / 2), 6);
    close(fd);
    assert_whole(&blob);
    blob_fini(&blob);
    assert_int_equal(blob_open(blobs, &digest, BYTES, &blob, &err), ERR_DIGEST_MISMATCH);
}

TEST(a_file_that_is_cut_after_it_was_checked_changes_nothing) {
    struct blob blob;
    open_blob(&blob);
    assert_return_code(truncate(path, 0), 0);
    assert_whole(&blob);
    blob_fini(&blob);
}

TEST(a_file_that_is_cut_while_it_is_read_is_a_mismatch) {
    for (uint64_t nth = 1; nth <= BYTES >> 20; nth++) {
        const struct io_faults cut = {
            .folder = dir, .calls = 1 << IO_CALL_READ, .nth = nth, .error = IO_FAULT_CUT};
        struct blob blob;
        io_faults_arm(&cut);
        assert_int_equal(blob_open(blobs, &digest, BYTES, &blob, &err), ERR_DIGEST_MISMATCH);
        assert_int_equal(io_faults_seen(), nth);
    }
}

/* No more is held than configured, and what is given back can be had again. */
TEST(blobs_that_are_held_stay_within_their_bound) {
    for (int i = 0; i < 3; i++) {
        struct blob blob, more;
        open_blob(&blob);
        assert_int_equal(blob_open(blobs, &digest, BYTES, &more, &err), ERR_NO_MEMORY);
        blob_fini(&blob);
    }
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(a_file_that_is_written_after_it_was_checked_changes_nothing),
        S(a_file_that_is_cut_after_it_was_checked_changes_nothing),
        S(a_file_that_is_cut_while_it_is_read_is_a_mismatch),
        S(blobs_that_are_held_stay_within_their_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

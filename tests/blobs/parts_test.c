/* Proves: a blob that is read in parts gives the bytes that its name promises, or an error; an
 * output that is written in parts is stored by what is in it, or leaves nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/allocation_faults.h"
#include "support/io_faults.h"
#include "support/scratch.h"
#include "testing.h"

enum { PART_BYTES = 256 << 10, BYTES = 3 * PART_BYTES + 1000 };

static char *dir;
static struct blobs *blobs;
static struct error err;
static uint8_t payload[BYTES], found[BYTES];
static struct digest digest;

static void path_of(const struct digest *wanted, char path[static 256]) {
    char name[BLOB_NAME_SIZE];
    snprintf(path, 256, "%s/%s", dir, blob_name(wanted, name));
}

/* The first bytes of the payload, as another process puts them there. */
static void store_first(uint64_t bytes) {
    char path[256], shelf[256];
    digest = digest_of(slice_of(payload, bytes));
    path_of(&digest, path);
    snprintf(shelf, sizeof shelf, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_return_code(mkdir(shelf, 0777), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(payload, 1, bytes, file), bytes);
    assert_return_code(fclose(file), 0);
}

static void store_payload(void) {
    store_first(BYTES);
}

static void remove_payload(void) {
    char path[256];
    path_of(&digest, path);
    assert_return_code(unlink(path), 0);
}

static void change_byte(uint64_t at) {
    char path[256];
    path_of(&digest, path);
    int fd = open(path, O_RDWR);
    assert_return_code(fd, 0);
    uint8_t other = (uint8_t)(payload[at] + 1);
    assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
    close(fd);
}

static void open_store(uint64_t held_bytes_max) {
    const struct blobs_options options = {
        .dir = dir, .bytes_max = 1, .held_bytes_max = held_bytes_max};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
}

static int set_up(void **state) {
    dir = scratch_create();
    open_store(1 << 20);
    for (size_t i = 0; i < BYTES; i++) payload[i] = (uint8_t)(i * 31 + i / 251);
    digest = digest_of(slice_of(payload, BYTES));
    return 0;
}

static int tear_down(void **state) {
    io_faults_arm(NULL);
    blobs_destroy(blobs);
    scratch_remove(dir);
    return 0;
}

static enum err open_parts(struct blob *ret) {
    return blob_open_parts(blobs, &digest, BYTES, ret, &err);
}

TEST(any_part_of_a_blob_that_is_larger_than_blobs_may_be_is_read) {
    static const struct {
        uint64_t at, bytes;
    } cases[] = {{0, BYTES}, {0, 1}, {BYTES - 1, 1}, {PART_BYTES - 1, 2}, {PART_BYTES, PART_BYTES},
        {5, 2 * PART_BYTES}, {3 * PART_BYTES, 1000}, {BYTES, 0}};
    struct blob blob;
    store_payload();
    assert_int_equal(open_parts(&blob), ERR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(found, 0, sizeof found);
        assert_int_equal(blob_read(&blob, cases[i].at, found, cases[i].bytes, &err), ERR_OK);
        assert_memory_equal(found, payload + cases[i].at, cases[i].bytes);
    }
    blob_fini(&blob);
}

TEST(a_file_with_other_bytes_than_its_name_says_is_refused_at_once) {
    struct blob blob;
    assert_int_equal(open_parts(&blob), ERR_BLOB_MISSING);
    store_payload();
    change_byte(BYTES - 1);
    assert_int_equal(open_parts(&blob), ERR_DIGEST_MISMATCH);
    assert_int_equal(blob_open_parts(blobs, &digest, BYTES + 1, &blob, &err), ERR_DIGEST_MISMATCH);
}

TEST(bytes_that_were_changed_after_the_check_are_never_read) {
    char path[256];
    struct blob blob;
    store_payload();
    assert_int_equal(open_parts(&blob), ERR_OK);
    change_byte(PART_BYTES + 7);
    assert_int_equal(blob_read(&blob, 0, found, PART_BYTES, &err), ERR_OK);
    assert_int_equal(blob_read(&blob, PART_BYTES, found, 5, &err), ERR_DIGEST_MISMATCH);
    assert_int_equal(blob_read(&blob, 10, found, 2 * PART_BYTES, &err), ERR_DIGEST_MISMATCH);
    path_of(&digest, path);
    assert_return_code(truncate(path, PART_BYTES), 0);
    assert_int_equal(blob_read(&blob, BYTES - 1, found, 1, &err), ERR_DIGEST_MISMATCH);
    blob_fini(&blob);
}

TEST(whichever_read_fails_a_part_is_an_error_of_the_disk) {
    enum { READS = 4 + 4 }; /* to check them, and then to read them */
    store_payload();
    for (uint64_t nth = 1; nth <= READS; nth++) {
        const struct io_faults fault = {
            .folder = dir, .calls = 1 << IO_CALL_READ, .nth = nth, .error = EIO};
        struct blob blob;
        io_faults_arm(&fault);
        enum err code = open_parts(&blob);
        assert_int_equal(code, nth <= READS / 2 ? ERR_IO : ERR_OK);
        if (code == ERR_OK) code = blob_read(&blob, 0, found, BYTES, &err);
        assert_int_equal(code, ERR_IO);
        assert_int_equal(err.native, EIO);
        assert_string_equal(err.trouble, BLOBS_TROUBLE);
        assert_string_equal(blobs_trouble(blobs), BLOBS_TROUBLE);
        assert_int_equal(io_faults_seen(), nth);
        blob_fini(&blob);
    }
}

TEST(so_many_files_are_open_at_once_and_no_more) {
    enum { FILES_MAX = 256 };
    static struct blob blobs_open[FILES_MAX - 1];
    struct blob blob;
    struct spool *spools[2] = {NULL, NULL};
    store_payload();
    for (size_t i = 0; i < FILES_MAX - 1; i++) assert_int_equal(open_parts(&blobs_open[i]), ERR_OK);
    assert_int_equal(blobs_create_spool(blobs, 1, &spools[0], &err), ERR_OK);
    assert_int_equal(blobs_create_spool(blobs, 1, &spools[1], &err), ERR_NO_MEMORY);
    assert_int_equal(open_parts(&blob), ERR_NO_MEMORY);
    spools_end(spools, 2);
    assert_int_equal(open_parts(&blob), ERR_OK);
    blob_fini(&blob);
    for (size_t i = 0; i < FILES_MAX - 1; i++) blob_fini(&blobs_open[i]);
}

TEST(what_blobs_in_parts_hold_is_a_digest_of_each_part_and_is_given_back) {
    struct blob blob, other;
    blobs_destroy(blobs);
    open_store(3 * sizeof digest);
    store_payload();
    assert_int_equal(open_parts(&blob), ERR_NO_MEMORY); /* its fourth part is not full */
    store_first(3 * PART_BYTES);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blob_open_parts(blobs, &digest, 3 * PART_BYTES, &blob, &err), ERR_OK);
        assert_int_equal(
            blob_open_parts(blobs, &digest, 3 * PART_BYTES, &other, &err), ERR_NO_MEMORY);
        assert_int_equal(blob_read(&blob, 1, found, 3 * PART_BYTES - 1, &err), ERR_OK);
        assert_memory_equal(found, payload + 1, 3 * PART_BYTES - 1);
        blob_fini(&blob);
    }
}

static size_t count_files(const char *shelf) {
    char path[256];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", dir, shelf);
    DIR *files = opendir(path);
    if (files == NULL) return 0;
    for (struct dirent *item; (item = readdir(files)) != NULL;) count += item->d_type == DT_REG;
    closedir(files);
    return count;
}

TEST(an_output_that_is_written_in_any_order_is_stored_by_what_is_in_it) {
    struct spool *spool;
    struct digest stored;
    struct blob blob;
    char path[256];
    struct stat status;
    const mode_t mask = umask(022);
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    memset(payload + 1000, 0, 50); /* never written */
    digest = digest_of(slice_of(payload, BYTES));
    assert_int_equal(
        spool_write(spool, 1050, slice_of(payload + 1050, BYTES - 1050), &err), ERR_OK);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, 1000), &err), ERR_OK);
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_OK);
    spool_destroy(spool);
    assert_true(digest_equal(&stored, &digest));
    path_of(&digest, path);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0644);
    umask(mask);
    assert_int_equal(open_parts(&blob), ERR_OK);
    blob_fini(&blob);
    assert_int_equal(count_files("00"), strncmp(path + strlen(dir), "/00/", 4) == 0);
}

TEST(an_output_that_is_stored_already_is_stored_once) {
    struct spool *spool;
    struct digest stored;
    store_payload();
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, BYTES), &err), ERR_OK);
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_OK);
    spool_destroy(spool);
    assert_true(digest_equal(&stored, &digest));
    assert_int_equal(count_files("00"), 0);
}

/* The one unfinished file: it has no name, but a descriptor of this process. */
static void path_of_unfinished(char path[static 512]) {
    char link[512];
    struct stat status;
    for (int fd = 3; fd < 100; fd++) {
        snprintf(path, 512, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, link, sizeof link);
        if (size > 0 && strncmp(link, dir, strlen(dir)) == 0 && stat(path, &status) == 0 &&
            S_ISREG(status.st_mode))
            return;
    }
    fail_msg("no unfinished file");
}

/* The first of the calls that fails; what follows it is not done. */
static enum err store_output(struct spool **spool, struct digest *stored) {
    enum err code = blobs_create_spool(blobs, BYTES, spool, &err);
    if (code == ERR_OK) code = spool_write(*spool, 0, slice_of(payload, BYTES), &err);
    if (code == ERR_OK) code = blobs_put_spool(blobs, *spool, stored, &err);
    return code;
}

TEST(whichever_call_of_the_disk_fails_an_output_says_why_and_leaves_nothing) {
    static const int errors[] = {EIO, ENOSPC};
    enum { CALLS_MIN = 10 };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        for (uint64_t nth = 1;; nth++) {
            struct io_faults fault = {
                .folder = dir, .calls = IO_CALLS_ALL, .nth = nth, .error = errors[i]};
            struct spool *spool = NULL;
            struct digest stored;
            struct blob blob;
            io_faults_arm(&fault);
            enum err code = store_output(&spool, &stored);
            io_faults_arm(NULL);
            spool_destroy(spool);
            assert_int_equal(count_files("00"), 0);
            if (code == ERR_OK) {
                assert_true(nth > CALLS_MIN);
                break;
            }
            assert_int_equal(code, ERR_IO);
            assert_int_equal(err.native, errors[i]);
            assert_non_null(err.trouble);
            assert_string_equal(err.trouble, errors[i] == ENOSPC ? BLOBS_DISK_FULL : BLOBS_TROUBLE);
            assert_string_equal(blobs_trouble(blobs), err.trouble); /* the worker is not ready */
            assert_int_equal(open_parts(&blob), ERR_BLOB_MISSING);
        }
        remove_payload();
    }
}

TEST(a_disk_that_takes_and_gives_less_at_a_time_changes_nothing) {
    const struct io_faults fault = {
        .folder = dir, .calls = IO_CALLS_ALL, .nth = 1, .error = IO_FAULT_SHORT};
    struct spool *spool;
    struct digest stored;
    struct blob blob;
    io_faults_arm(&fault);
    assert_int_equal(store_output(&spool, &stored), ERR_OK);
    spool_destroy(spool);
    assert_true(digest_equal(&stored, &digest));
    assert_int_equal(open_parts(&blob), ERR_OK);
    assert_int_equal(blob_read(&blob, 1, found, BYTES - 1, &err), ERR_OK);
    assert_memory_equal(found, payload + 1, BYTES - 1);
    blob_fini(&blob);
}

/* Each try has what the one before it held. */
TEST(without_memory_nothing_is_kept_of_a_blob_in_parts_or_an_output) {
    blobs_destroy(blobs);
    open_store(4 * sizeof digest);
    store_payload();
    bool has_failed = true;
    for (uint64_t nth = 1; has_failed; nth++) {
        struct spool *spool = NULL;
        struct digest stored;
        struct blob blob;
        allocation_faults_arm(nth);
        enum err code = open_parts(&blob);
        if (code == ERR_OK) code = blob_read(&blob, 1, found, 1, &err);
        if (code == ERR_OK) code = store_output(&spool, &stored);
        has_failed = allocation_faults_end();
        assert_int_equal(code, has_failed ? ERR_NO_MEMORY : ERR_OK);
        blob_fini(&blob);
        spool_destroy(spool);
        assert_int_equal(count_files("00"), 0);
    }
}

TEST(an_output_whose_file_was_cut_is_an_error_of_the_disk_and_leaves_nothing) {
    struct spool *spool;
    struct digest stored;
    char path[512];
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    assert_int_equal(spool_write(spool, 0, slice_of(payload, BYTES), &err), ERR_OK);
    path_of_unfinished(path);
    assert_return_code(truncate(path, 0), 0);
    errno = 0;
    assert_int_equal(blobs_put_spool(blobs, spool, &stored, &err), ERR_IO);
    assert_int_equal(err.native, EIO);
    assert_string_equal(err.trouble, BLOBS_TROUBLE);
    spool_destroy(spool);
    assert_int_equal(count_files("00"), 0);
}

TEST(
    no_other_user_reads_or_writes_an_output_before_it_is_stored_and_one_that_is_not_leaves_nothing) {
    char path[512];
    struct stat status;
    struct spool *spools[2] = {NULL, NULL};
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spools[1], &err), ERR_OK);
    path_of_unfinished(path);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    spools_end(spools, 2);
    assert_null(spools[1]);
    assert_int_equal(count_files("00"), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(any_part_of_a_blob_that_is_larger_than_blobs_may_be_is_read),
        F(a_file_with_other_bytes_than_its_name_says_is_refused_at_once),
        F(bytes_that_were_changed_after_the_check_are_never_read),
        F(whichever_read_fails_a_part_is_an_error_of_the_disk),
        F(so_many_files_are_open_at_once_and_no_more),
        F(what_blobs_in_parts_hold_is_a_digest_of_each_part_and_is_given_back),
        F(an_output_that_is_written_in_any_order_is_stored_by_what_is_in_it),
        F(an_output_that_is_stored_already_is_stored_once),
        F(whichever_call_of_the_disk_fails_an_output_says_why_and_leaves_nothing),
        F(a_disk_that_takes_and_gives_less_at_a_time_changes_nothing),
        F(without_memory_nothing_is_kept_of_a_blob_in_parts_or_an_output),
        F(an_output_whose_file_was_cut_is_an_error_of_the_disk_and_leaves_nothing),
        F(no_other_user_reads_or_writes_an_output_before_it_is_stored_and_one_that_is_not_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

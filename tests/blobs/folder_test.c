#include "blobs/blobs.h"
#include "blobs/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/io_faults.h"
#include "support/scratch.h"
#include "testing.h"

enum { HOUR_S = 3600 };

static const uint64_t now_s = 2000000000;
static char *dir;
static struct blobs *blobs;
static struct error err;

static void open_store(uint32_t max_age_hours) {
    struct blobs_options options = {
        .dir = dir, .bytes_max = 1 << 20, .max_age_hours = max_age_hours};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
}

static int set_up(void **state) {
    dir = scratch_create();
    open_store(0);
    return 0;
}

static int tear_down(void **state) {
    io_faults_arm(NULL);
    blobs_destroy(blobs);
    scratch_remove(dir);
    return 0;
}

static struct digest put(const char *text) {
    struct slice payload = slice_of_text(text);
    struct digest digest = digest_of(payload);
    assert_int_equal(blobs_put(blobs, &digest, payload, &err), ERR_OK);
    return digest;
}

static void path_of(const struct digest *digest, char path[static 256]) {
    char name[BLOB_NAME_SIZE];
    snprintf(path, 256, "%s/%s", dir, blob_name(digest, name));
}

static bool is_there(const struct digest *digest) {
    char path[256];
    path_of(digest, path);
    return access(path, F_OK) == 0;
}

static void set_used(const char *path, uint64_t unix_s) {
    const struct timespec times[2] = {{.tv_sec = (time_t)unix_s}, {.tv_sec = (time_t)unix_s}};
    assert_return_code(utimensat(AT_FDCWD, path, times, 0), 0);
}

static uint64_t used_s(const struct digest *digest) {
    char path[256];
    struct stat status;
    path_of(digest, path);
    assert_return_code(stat(path, &status), 0);
    return (uint64_t)status.st_mtim.tv_sec;
}

static void overwrite(const struct digest *digest, const char *text) {
    char path[256];
    path_of(digest, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void count_file(void *context, const struct folder_file *file) {
    size_t *counts = context;
    counts[file->is_temp]++;
}

/* [0] blobs, [1] unfinished files */
static void count_files(size_t counts[static 2]) {
    struct folder folder;
    counts[0] = counts[1] = 0;
    assert_int_equal(folder_open(&folder, "blobs.dir", dir, 0700, &err), ERR_OK);
    folder_visit(&folder, count_file, counts);
    folder_close(&folder);
}

TEST(what_is_put_is_found_under_its_digest_and_nothing_else_remains) {
    size_t counts[2];
    struct digest digest = put("payload");
    struct blob blob;
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_OK);
    assert_memory_equal(blob.bytes.data, "payload", 7);
    blob_fini(&blob);
    blob_fini(&blob);
    count_files(counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 0);
    struct stat status;
    char path[256];
    path_of(&digest, path);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0400, 0400);
}

TEST(a_payload_that_is_nowhere_is_missing) {
    struct digest digest = digest_of(slice_of_text("other"));
    struct blob blob;
    assert_int_equal(blob_open(blobs, &digest, 5, &blob, &err), ERR_BLOB_MISSING);
    assert_null(blob.mapping);
    assert_int_equal(blob_open(NULL, &digest, 5, &blob, &err), ERR_BLOB_MISSING);
    assert_non_null(strstr(err.fix, "blobs.dir"));
}

TEST(another_size_or_other_bytes_are_a_mismatch) {
    struct digest digest = put("payload");
    struct blob blob;
    assert_int_equal(blob_open(blobs, &digest, 6, &blob, &err), ERR_DIGEST_MISMATCH);
    assert_int_equal(blob_open(blobs, &digest, 8, &blob, &err), ERR_DIGEST_MISMATCH);
    overwrite(&digest, "damaged");
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_DIGEST_MISMATCH);
    assert_null(strstr(err.message, dir)); /* senders see it */
    assert_null(blob.mapping);
}

TEST(what_is_no_file_does_not_hold_the_reader) {
    struct digest digest = put("payload");
    struct blob blob;
    char path[256];
    path_of(&digest, path);
    assert_return_code(unlink(path), 0);
    assert_return_code(mkfifo(path, 0600), 0);
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_BLOB_MISSING);
}

TEST(blobs_over_the_limit_are_neither_read_nor_stored) {
    static uint8_t bytes[(1 << 20) + 1];
    struct slice payload = slice_of(bytes, sizeof bytes);
    struct digest digest = digest_of(payload);
    struct blob blob;
    assert_int_equal(blobs_put(blobs, &digest, payload, &err), ERR_TOO_LARGE);
    assert_int_equal(blob_open(blobs, &digest, sizeof bytes, &blob, &err), ERR_TOO_LARGE);
    assert_false(is_there(&digest));
}

TEST(what_is_stored_already_is_not_written_again) {
    struct digest digest = put("payload");
    char path[256];
    struct stat before, now;
    path_of(&digest, path);
    int kept = open(path, O_RDONLY); /* its number is not given to another file */
    assert_return_code(fstat(kept, &before), 0);
    put("payload");
    assert_return_code(stat(path, &now), 0);
    assert_int_equal(now.st_ino, before.st_ino);
    close(kept);
}

TEST(a_folder_that_cannot_be_read_is_trouble_and_no_missing_blob) {
    struct digest digest = put("payload");
    struct blob blob;
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the sub-folder, and the file */
        const struct io_faults fault = {
            .folder = dir, .calls = 1 << IO_CALL_OPEN, .nth = nth, .error = EIO};
        io_faults_arm(&fault);
        enum err code = blob_open(blobs, &digest, 7, &blob, &err);
        io_faults_arm(NULL);
        assert_int_equal(code, ERR_IO);
        assert_int_equal(err.native, EIO);
        assert_string_equal(blobs_trouble(blobs), BLOBS_TROUBLE);
    }
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_OK);
    assert_string_equal(blobs_trouble(blobs), "");
    blob_fini(&blob);
}

TEST(putting_again_marks_a_blob_as_used_and_mends_a_cut_one) {
    struct digest digest = put("payload");
    struct blob blob;
    char path[256];
    path_of(&digest, path);
    set_used(path, 1000);
    put("payload");
    assert_true(used_s(&digest) > 1000);
    overwrite(&digest, "pay");
    put("payload");
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_OK);
    blob_fini(&blob);
}

TEST(reading_marks_a_blob_as_used) {
    struct digest digest = put("payload");
    struct blob blob;
    char path[256];
    path_of(&digest, path);
    set_used(path, 1000);
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_OK);
    blob_fini(&blob);
    assert_true(used_s(&digest) > 1000);
}

/* A process that is killed while it writes. */
static void write_and_die(void) {
    static const struct digest unknown;
    struct folder folder;
    struct temp_file file;
    bool is_written = folder_open(&folder, "blobs.dir", dir, 0700, &err) == ERR_OK &&
                      temp_file_create(&folder, &unknown, &file, &err) == ERR_OK &&
                      temp_file_write(&file, slice_of_text("much"), &err) == ERR_OK;
    if (is_written) raise(SIGKILL);
    _exit(1);
}

TEST(a_process_that_dies_leaves_no_unfinished_file) {
    size_t counts[2];
    int status;
    pid_t pid = fork();
    if (pid == 0) write_and_die();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    count_files(counts);
    assert_int_equal(counts[1], 0);
}

/* What a crash between the write and the rename leaves where a file needs a name. */
TEST(an_unfinished_file_is_no_blob_and_is_removed_after_an_hour) {
    struct digest digest = digest_of(slice_of_text("payload"));
    struct blob blob;
    size_t counts[2];
    char path[256];
    path_of(&digest, path);
    *strrchr(path, '/') = 0;
    assert_return_code(mkdir(path, 0700), 0);
    strcat(path, "/.gpu-worker.0123456789abcdef");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("payload", file);
    fclose(file);
    assert_int_equal(blob_open(blobs, &digest, 7, &blob, &err), ERR_BLOB_MISSING);

    set_used(path, now_s - HOUR_S);
    blobs_sweep(blobs, now_s);
    count_files(counts);
    assert_int_equal(counts[1], 1);
    blobs_sweep(blobs, now_s + 1);
    count_files(counts);
    assert_int_equal(counts[1], 0);
}

TEST(blobs_expire_after_their_age_and_not_before) {
    blobs_destroy(blobs);
    open_store(24);
    struct digest old = put("old"), young = put("young");
    char path[256];
    path_of(&old, path);
    set_used(path, now_s - 24 * HOUR_S - 1);
    path_of(&young, path);
    set_used(path, now_s - 24 * HOUR_S);
    blobs_sweep(blobs, now_s);
    assert_false(is_there(&old));
    assert_true(is_there(&young));
}

TEST(blobs_without_an_age_stay) {
    struct digest digest = put("payload");
    char path[256];
    path_of(&digest, path);
    set_used(path, 1);
    blobs_sweep(blobs, now_s);
    assert_true(is_there(&digest));
}

/* Between the sweep's look and the removal somebody may count on the blob. */
TEST(a_blob_that_was_used_since_the_look_stays) {
    struct digest digest = put("payload");
    struct folder folder;
    struct folder_file seen = {.digest = digest, .used_unix_ns = 1000};
    size_t counts[2];
    char name[BLOB_NAME_SIZE];
    blob_name(&digest, name);
    snprintf(seen.shelf, sizeof seen.shelf, "%.2s", name);
    snprintf(seen.name, sizeof seen.name, "%s", name + 3);
    assert_int_equal(folder_open(&folder, "blobs.dir", dir, 0700, &err), ERR_OK);
    folder_expire(&folder, &seen, 1000000);
    folder_close(&folder);
    count_files(counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 0);
}

TEST(files_with_other_names_are_left_alone) {
    blobs_destroy(blobs);
    open_store(1);
    put("payload");
    char path[256];
    snprintf(path, sizeof path, "%s/README", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    set_used(path, 1);
    blobs_sweep(blobs, now_s * 2);
    assert_return_code(access(path, F_OK), 0);
}

TEST(a_folder_that_is_not_there_is_made) {
    char path[256];
    struct stat status;
    struct folder folder;
    snprintf(path, sizeof path, "%s/new", dir);
    for (int i = 0; i < 2; i++) {
        errno = 0;
        assert_int_equal(folder_open(&folder, "blobs.dir", path, 0700, &err), ERR_OK);
        assert_return_code(fstat(folder.fd, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);
        folder_close(&folder);
    }
}

TEST(whichever_call_of_the_disk_fails_what_is_put_says_why_and_leaves_nothing) {
    static const int errors[] = {EIO, ENOSPC};
    enum { CALLS_MIN = 5 };
    const struct slice payload = slice_of_text("a payload that the disk refuses");
    const struct digest digest = digest_of(payload);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        enum err code = ERR_IO;
        uint64_t nth = 0;
        size_t counts[2];
        while (code != ERR_OK) {
            const struct io_faults fault = {
                .folder = dir, .calls = IO_CALLS_ALL, .nth = ++nth, .error = errors[i]};
            io_faults_arm(&fault);
            code = blobs_put(blobs, &digest, payload, &err);
            const struct error why = err;
            io_faults_arm(NULL);
            count_files(counts);
            assert_int_equal(counts[0], code == ERR_OK ? 1 : 0);
            assert_int_equal(counts[1], 0);
            if (code == ERR_OK) break;
            assert_int_equal(code, ERR_IO);
            assert_int_equal(why.native, errors[i]);
            assert_string_equal(why.trouble, errors[i] == ENOSPC ? BLOBS_DISK_FULL : BLOBS_TROUBLE);
        }
        assert_true(nth > CALLS_MIN);
        char path[256];
        path_of(&digest, path);
        assert_return_code(unlink(path), 0);
    }
}

TEST(a_folder_that_cannot_be_used_is_said_at_start) {
    struct blobs_options options = {.dir = "/dev/null/blobs", .bytes_max = 1};
    struct blobs *none = NULL;
    assert_int_equal(blobs_create(&options, &none, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "/dev/null/blobs"));
    assert_null(none);
    blobs_destroy(NULL);
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(what_is_put_is_found_under_its_digest_and_nothing_else_remains),
        S(a_payload_that_is_nowhere_is_missing),
        S(another_size_or_other_bytes_are_a_mismatch),
        S(what_is_no_file_does_not_hold_the_reader),
        S(blobs_over_the_limit_are_neither_read_nor_stored),
        S(what_is_stored_already_is_not_written_again),
        S(a_folder_that_cannot_be_read_is_trouble_and_no_missing_blob),
        S(putting_again_marks_a_blob_as_used_and_mends_a_cut_one),
        S(reading_marks_a_blob_as_used),
        S(a_process_that_dies_leaves_no_unfinished_file),
        S(an_unfinished_file_is_no_blob_and_is_removed_after_an_hour),
        S(blobs_expire_after_their_age_and_not_before),
        S(blobs_without_an_age_stay),
        S(a_blob_that_was_used_since_the_look_stays),
        S(files_with_other_names_are_left_alone),
        S(a_folder_that_is_not_there_is_made),
        S(whichever_call_of_the_disk_fails_what_is_put_says_why_and_leaves_nothing),
        S(a_folder_that_cannot_be_used_is_said_at_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

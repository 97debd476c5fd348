/* Who may write in the folder of blobs makes the worker touch no file elsewhere. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/scratch.h"
#include "testing.h"

static const char text[] = "a payload of somebody else";
static const time_t long_ago = 1000000000;
static char *dir, *elsewhere;
static struct blobs *blobs;
static struct digest digest;
static char name[BLOB_NAME_SIZE], outside[512], inside[512], shelf[512];
static struct error err;

static void write_file(const char *path) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const struct timespec times[2] = {{.tv_sec = long_ago}, {.tv_sec = long_ago}};
    assert_return_code(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int set_up(void **state) {
    dir = scratch_create();
    elsewhere = scratch_create();
    const struct blobs_options options = {.dir = dir, .bytes_max = 1000, .max_age_hours = 1};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    digest = digest_of(slice_of_text(text));
    blob_name(&digest, name);
    snprintf(shelf, sizeof shelf, "%s/%.2s", dir, name);
    snprintf(inside, sizeof inside, "%s/%s", dir, name);
    snprintf(outside, sizeof outside, "%s/%s", elsewhere, name + strlen("ab/"));
    write_file(outside);
    return 0;
}

static int tear_down(void **state) {
    blobs_destroy(blobs);
    scratch_remove(dir);
    scratch_remove(elsewhere);
    return 0;
}

static void assert_untouched(const char *path) {
    struct stat status;
    assert_return_code(lstat(path, &status), 0);
    assert_int_equal(status.st_mtim.tv_sec, long_ago);
    assert_int_equal(status.st_size, strlen(text));
}

static enum err read_it(void) {
    struct blob blob;
    enum err code = blob_open(blobs, &digest, strlen(text), &blob, &err);
    blob_fini(&blob);
    return code;
}

TEST(a_link_to_a_file_is_not_read_and_not_marked) {
    assert_return_code(mkdir(shelf, 0700), 0);
    assert_return_code(symlink(outside, inside), 0);
    assert_int_equal(read_it(), ERR_BLOB_MISSING);
    assert_untouched(outside);
}

TEST(a_link_to_a_folder_is_not_read_and_not_marked) {
    assert_return_code(symlink(elsewhere, shelf), 0);
    assert_int_equal(read_it(), ERR_BLOB_MISSING);
    assert_untouched(outside);
}

TEST(nothing_is_stored_through_a_link_to_a_folder) {
    assert_return_code(unlink(outside), 0);
    assert_return_code(symlink(elsewhere, shelf), 0);
    assert_int_equal(blobs_put(blobs, &digest, slice_of_text(text), &err), ERR_IO);
    assert_int_equal(access(outside, F_OK), -1);
}

TEST(a_link_to_a_file_is_replaced_by_what_is_stored) {
    assert_return_code(mkdir(shelf, 0700), 0);
    assert_return_code(symlink(outside, inside), 0);
    assert_int_equal(blobs_put(blobs, &digest, slice_of_text(text), &err), ERR_OK);
    assert_untouched(outside);
    assert_int_equal(read_it(), ERR_OK);
    assert_untouched(outside);
}

TEST(the_sweep_removes_nothing_behind_a_link) {
    char temporary[512], hidden[512];
    snprintf(temporary, sizeof temporary, "%s/.gpu-worker.0123456789abcdef", elsewhere);
    snprintf(hidden, sizeof hidden, "%s/.profile", elsewhere);
    write_file(temporary);
    write_file(hidden);
    assert_return_code(symlink(elsewhere, shelf), 0);
    blobs_sweep(blobs, (uint64_t)long_ago * 2);
    assert_untouched(temporary);
    assert_untouched(hidden);
    assert_untouched(outside);
}

TEST(the_sweep_removes_no_unfinished_file_of_others) {
    char other[600], own[600];
    assert_return_code(mkdir(shelf, 0700), 0);
    snprintf(other, sizeof other, "%s/.nfs0123456789abcdef", shelf);
    snprintf(own, sizeof own, "%s/.gpu-worker.0123456789abcdef", shelf);
    write_file(other);
    write_file(own);
    blobs_sweep(blobs, (uint64_t)long_ago * 2);
    assert_untouched(other);
    assert_int_equal(access(own, F_OK), -1);
}

/* The file is somebody's elsewhere too: its bytes are right, and its times are not ours to set. */
TEST(a_file_with_another_name_is_read_and_neither_marked_nor_removed) {
    assert_return_code(mkdir(shelf, 0700), 0);
    assert_return_code(link(outside, inside), 0);
    assert_int_equal(read_it(), ERR_OK);
    assert_int_equal(blobs_put(blobs, &digest, slice_of_text(text), &err), ERR_OK);
    assert_untouched(outside);
    blobs_sweep(blobs, (uint64_t)long_ago * 2);
    assert_untouched(inside);
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(a_link_to_a_file_is_not_read_and_not_marked),
        S(a_link_to_a_folder_is_not_read_and_not_marked),
        S(nothing_is_stored_through_a_link_to_a_folder),
        S(a_link_to_a_file_is_replaced_by_what_is_stored),
        S(the_sweep_removes_nothing_behind_a_link),
        S(the_sweep_removes_no_unfinished_file_of_others),
        S(a_file_with_another_name_is_read_and_neither_marked_nor_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Proves: a blob that is read in parts gives the bytes that its name promises, or an error; an
 * output that is written in parts is stored by what is in it, or leaves nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "support/scratch.h"
#include "testing.h"

enum { PART_BYTES = 256 << 10, BYTES = 3 * PART_BYTES + 1000, BLOB_BYTES_MAX = 4096 };

static char *dir;
static struct blobs *blobs;
static struct error err;
static uint8_t payload[BYTES], found[BYTES];
static struct digest digest;

static void path_of(const struct digest *wanted, char path[static 256]) {
    char name[BLOB_NAME_SIZE];
    snprintf(path, 256, "%s/%s", dir, blob_name(wanted, name));
}

/* As another process puts it there. */
static void store_payload(void) {
    char path[256], shelf[256];
    path_of(&digest, path);
    snprintf(shelf, sizeof shelf, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_return_code(mkdir(shelf, 0777), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(payload, 1, BYTES, file), BYTES);
    assert_return_code(fclose(file), 0);
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

static int set_up(void **state) {
    dir = scratch_create();
    struct blobs_options options = {
        .dir = dir, .bytes_max = BLOB_BYTES_MAX, .held_bytes_max = 1 << 20};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    for (size_t i = 0; i < BYTES; i++) payload[i] = (uint8_t)(i * 31 + i / 251);
    digest = digest_of(slice_of(payload, BYTES));
    return 0;
}

static int tear_down(void **state) {
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

TEST(
    no_other_user_reads_or_writes_an_output_before_it_is_stored_and_one_that_is_not_leaves_nothing) {
    char path[512];
    struct stat status;
    struct spool *spools[2] = {NULL, NULL};
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spools[1], &err), ERR_OK);
    assert_int_equal(count_files("00"), 1);
    snprintf(path, sizeof path, "%s/00", dir);
    DIR *files = opendir(path);
    assert_non_null(files);
    for (struct dirent *item; (item = readdir(files)) != NULL;) {
        if (item->d_type != DT_REG) continue;
        assert_return_code(fstatat(dirfd(files), item->d_name, &status, 0), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
    }
    closedir(files);
    spools_end(spools, 2);
    assert_null(spools[1]);
    assert_int_equal(count_files("00"), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        F(any_part_of_a_blob_that_is_larger_than_blobs_may_be_is_read),
        F(a_file_with_other_bytes_than_its_name_says_is_refused_at_once),
        F(bytes_that_were_changed_after_the_check_are_never_read),
        F(so_many_files_are_open_at_once_and_no_more),
        F(an_output_that_is_written_in_any_order_is_stored_by_what_is_in_it),
        F(an_output_that_is_stored_already_is_stored_once),
        F(no_other_user_reads_or_writes_an_output_before_it_is_stored_and_one_that_is_not_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "blobs/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/cache_rig.h"

enum { BLOB_COUNT = 12, ROOM = 4 };

static int set_up(void **state) {
    start_cache(BLOB_COUNT, ROOM);
    return 0;
}

static void path_of(size_t index, char path[static 256]) {
    char name[BLOB_NAME_SIZE];
    snprintf(path, 256, "%s/%s", dir, blob_name(&digests[index], name));
}

static void set_used(const char *path, time_t unix_s) {
    const struct timespec times[2] = {{.tv_sec = unix_s}, {.tv_sec = unix_s}};
    assert_return_code(utimensat(AT_FDCWD, path, times, 0), 0);
}

struct sums {
    uint64_t blob_bytes;
    size_t temp_count;
};

static void sum_file(void *context, const struct folder_file *file) {
    struct sums *sums = context;
    if (file->is_temp) sums->temp_count++;
    else sums->blob_bytes += file->bytes;
}

static struct sums sum_files(void) {
    struct sums sums = {0};
    struct folder folder;
    assert_int_equal(folder_open(&folder, "blobs.cache_dir", dir, 0700, &err), ERR_OK);
    folder_visit(&folder, sum_file, &sums);
    folder_close(&folder);
    return sums;
}

TEST(what_was_fetched_is_read_from_the_disk) {
    assert_true(is_fetched(0));
    assert_false(is_fetched(0));
}

/* What leaves is in eviction_test. */
TEST(blobs_that_are_read_once_replace_no_blob_that_is_read_again) {
    for (size_t i = 0; i < 2; i++) assert_true(is_fetched(i));
    for (size_t i = 0; i < 4; i++) assert_false(is_fetched(i % 2));
    for (size_t i = 2; i < BLOB_COUNT; i++) assert_true(is_fetched(i));
    assert_int_equal(sum_files().blob_bytes, ROOM * BLOB_BYTES);
    for (size_t i = 0; i < 2; i++) assert_false(is_fetched(i));
    assert_true(is_fetched(2));
}

TEST(a_blob_that_left_stays_readable_while_it_is_held) {
    struct blob blob;
    assert_int_equal(blob_open(blobs, &digests[0], BLOB_BYTES, &blob, &err), ERR_OK);
    for (size_t i = 1; i <= ROOM; i++) assert_true(is_fetched(i));
    assert_true(is_fetched(0));
    assert_memory_equal(blob.bytes.data, payloads[0], BLOB_BYTES);
    blob_fini(&blob);
}

TEST(the_cache_survives_a_restart_and_keeps_its_order) {
    char path[256];
    for (size_t i = 0; i < ROOM; i++) assert_true(is_fetched(i));
    for (size_t i = 0; i < ROOM; i++) {
        path_of(i, path);
        set_used(path, 5000 - (time_t)i); /* the last is the oldest */
    }
    blobs_destroy(blobs);
    open_store((ROOM - 1) * BLOB_BYTES);
    assert_int_equal(sum_files().blob_bytes, (ROOM - 1) * BLOB_BYTES);
    for (size_t i = 0; i < ROOM - 1; i++) assert_false(is_fetched(i));
    assert_true(is_fetched(ROOM - 1));
}

TEST(damaged_files_are_fetched_again) {
    char path[256];
    path_of(0, path);
    for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
        (void)is_fetched(0);
        assert_return_code(truncate(path, BLOB_BYTES / 2), 0);
        if (is_restarted) {
            blobs_destroy(blobs);
            open_store(ROOM * BLOB_BYTES);
        }
        assert_true(is_fetched(0));
        int fd = open(path, O_WRONLY);
        assert_int_equal(pwrite(fd, "x", 1, 7), 1);
        close(fd);
        assert_true(is_fetched(0));
        assert_return_code(unlink(path), 0);
        assert_true(is_fetched(0));
        assert_false(is_fetched(0));
    }
}

TEST(a_job_with_a_wrong_size_does_not_cost_the_blob_its_place) {
    struct blob blob;
    assert_true(is_fetched(0));
    assert_int_equal(
        blob_open(blobs, &digests[0], BLOB_BYTES - 1, &blob, &err), ERR_DIGEST_MISMATCH);
    assert_int_equal(
        blob_open(blobs, &digests[0], BLOB_BYTES + 1, &blob, &err), ERR_DIGEST_MISMATCH);
    assert_false(is_fetched(0));
}

TEST(a_blob_over_the_budget_is_used_and_not_kept) {
    blobs_destroy(blobs);
    open_store(BLOB_BYTES - 1);
    assert_true(is_fetched(0));
    assert_true(is_fetched(0));
    struct sums sums = sum_files();
    assert_int_equal(sums.blob_bytes, 0);
    assert_int_equal(sums.temp_count, 0);
}

TEST(a_failed_fetch_leaves_nothing) {
    struct blob blob;
    blob_server_set_mishap(server, MISHAP_CUT);
    assert_int_equal(blob_open(blobs, &digests[0], BLOB_BYTES, &blob, &err), ERR_IO);
    struct sums sums = sum_files();
    assert_int_equal(sums.blob_bytes, 0);
    assert_int_equal(sums.temp_count, 0);
}

TEST(unfinished_files_are_removed_at_start) {
    char path[300];
    snprintf(path, sizeof path, "%s/00", dir);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    strcat(path, "/.gpu-worker.0123456789abcdef"); /* where a file needs a name */
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(sum_files().temp_count, 1);
    blobs_destroy(blobs);
    open_store(ROOM * BLOB_BYTES);
    assert_int_equal(sum_files().temp_count, 0);
}

TEST(a_cache_has_one_owner) {
    struct cache *second = NULL;
    assert_int_equal(cache_create(dir, 1, &second, &err), ERR_CONFIG);
    assert_null(second);
}

/* As after a fetch that failed or brought it. */
static bool settle(struct cache *cache, size_t index, struct cache_entry *claimed, bool is_failed) {
    struct temp_file file;
    struct error why;
    bool is_kept;
    if (temp_file_create(cache_folder(cache), &digests[index], &file, &why) != ERR_OK ||
        temp_file_write(&file, slice_of(payloads[index], BLOB_BYTES), &why) != ERR_OK ||
        cache_settle(cache, claimed, is_failed ? NULL : &file, &is_kept, &why) != ERR_OK)
        return false;
    (is_kept ? temp_file_close : temp_file_discard)(&file);
    return true;
}

/* Claims and settles without a network, so that many meet at once. */
static void *use_cache(void *context) {
    struct cache *cache = context;
    struct error thread_err;
    struct blob_memory memory = {.bytes_max = BLOB_BYTES};
    unsigned seed = (unsigned)(uintptr_t)&thread_err;
    for (int i = 0; i < 400; i++) {
        size_t index = (size_t)rand_r(&seed) % BLOB_COUNT;
        struct cache_entry *claimed;
        struct blob blob = {0};
        if (cache_claim(cache, &digests[index], BLOB_BYTES, &claimed, &thread_err) != ERR_OK)
            return NULL;
        if (claimed == NULL) {
            /* it may have left since: then it is missing, and never anything else */
            enum err code = folder_read(
                cache_folder(cache), &digests[index], BLOB_BYTES, &memory, &blob, &thread_err);
            blob_fini(&blob);
            if (code != ERR_OK && code != ERR_BLOB_MISSING) return NULL;
            if (i % 50 == 0) cache_forget(cache, &digests[index]);
            continue;
        }
        bool is_failed = i % 7 == 0 || !cache_wants(cache, claimed);
        if (!settle(cache, index, claimed, is_failed)) return NULL;
    }
    return context;
}

TEST(the_budget_holds_and_the_books_are_exact_whoever_comes) {
    struct cache *cache;
    pthread_t threads[8];
    blobs_destroy(blobs);
    blobs = NULL;
    assert_int_equal(cache_create(dir, ROOM * BLOB_BYTES, &cache, &err), ERR_OK);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_cache, cache), 0);
    for (size_t i = 0; i < 8; i++) {
        void *went_well;
        pthread_join(threads[i], &went_well);
        assert_non_null(went_well);
    }
    assert_true(sum_files().blob_bytes <= ROOM * BLOB_BYTES);
    for (size_t i = 0; i < BLOB_COUNT; i++) { /* what the books have room for is filled */
        struct cache_entry *claimed;
        assert_int_equal(cache_claim(cache, &digests[i], BLOB_BYTES, &claimed, &err), ERR_OK);
        if (claimed != NULL) assert_true(settle(cache, i, claimed, !cache_wants(cache, claimed)));
    }
    struct sums sums = sum_files();
    assert_int_equal(sums.blob_bytes, ROOM * BLOB_BYTES);
    assert_int_equal(sums.temp_count, 0);
    cache_destroy(cache);
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, end_cache)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(what_was_fetched_is_read_from_the_disk),
        S(blobs_that_are_read_once_replace_no_blob_that_is_read_again),
        S(a_blob_that_left_stays_readable_while_it_is_held),
        S(the_cache_survives_a_restart_and_keeps_its_order),
        S(damaged_files_are_fetched_again),
        S(a_job_with_a_wrong_size_does_not_cost_the_blob_its_place),
        S(a_blob_over_the_budget_is_used_and_not_kept),
        S(a_failed_fetch_leaves_nothing),
        S(unfinished_files_are_removed_at_start),
        S(a_cache_has_one_owner),
        S(the_budget_holds_and_the_books_are_exact_whoever_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

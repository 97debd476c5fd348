#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "blobs/blobs.h"
#include "support/blob_server.h"
#include "support/scratch.h"
#include "testing.h"

static const char payload_text[] = "a payload that comes over the network";
static struct slice payload;
static char *cache_dir;
static struct blob_server *server;
static struct blobs *blobs;
static struct error err;

static void connect_for(const char *url, uint32_t timeout_ms) {
    struct blobs_options options = {.url = url,
        .cache_dir = cache_dir,
        .cache_bytes = 1 << 20,
        .bytes_max = 1 << 20,
        .timeout_ms = timeout_ms};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
}

static void connect_to(const char *url) {
    connect_for(url, 60000);
}

static int set_up(void **state) {
    payload = slice_of(payload_text, sizeof payload_text);
    cache_dir = scratch_create();
    server = blob_server_start();
    connect_to(blob_server_url(server));
    return 0;
}

static int tear_down(void **state) {
    blobs_destroy(blobs);
    blob_server_stop(server);
    scratch_remove(cache_dir);
    return 0;
}

static enum err fetch(const struct digest *digest, uint64_t bytes) {
    struct blob blob;
    enum err code = blob_open(blobs, digest, bytes, &blob, &err);
    if (code == ERR_OK) assert_memory_equal(blob.bytes.data, payload.data, bytes);
    else assert_null(blob.mapping);
    blob_fini(&blob);
    return code;
}

static void assert_refused(enum mishap mishap, enum err code, const char *part) {
    struct digest digest = blob_server_add(server, payload);
    blob_server_set_mishap(server, mishap);
    assert_int_equal(fetch(&digest, payload.size), code);
    if (strstr(err.message, part) == NULL) print_message("%s\n", err.message);
    assert_non_null(strstr(err.message, part));
    assert_null(strstr(err.message, "hunter2"));
    assert_null(strstr(err.message, "reader"));
    assert_true(err.fix[0] != 0);
    blob_server_set_mishap(server, MISHAP_NONE); /* and nothing bad was kept */
    assert_int_equal(fetch(&digest, payload.size), ERR_OK);
}

TEST(a_blob_is_fetched_with_the_credentials_of_the_url) {
    struct digest digest = blob_server_add(server, payload);
    assert_int_equal(fetch(&digest, payload.size), ERR_OK);
    assert_true(blob_server_saw_credentials(server));
}

TEST(a_blob_that_the_store_does_not_have_is_missing) {
    struct digest digest = digest_of(payload);
    assert_int_equal(fetch(&digest, payload.size), ERR_BLOB_MISSING);
    assert_null(strstr(err.message, "127.0.0.1")); /* senders see it */
}

TEST(a_store_in_trouble_is_worth_another_try) {
    assert_refused(MISHAP_STATUS_500, ERR_IO, "HTTP status 500");
}

TEST(a_connection_that_is_cut_is_worth_another_try) {
    assert_refused(MISHAP_CUT, ERR_IO, "GET http://127.0.0.1:");
}

TEST(a_store_that_is_not_there_is_worth_another_try) {
    struct digest digest = digest_of(payload);
    blobs_destroy(blobs);
    connect_to("http://reader:hunter2@127.0.0.1:1/");
    assert_int_equal(fetch(&digest, payload.size), ERR_IO);
    assert_non_null(strstr(err.message, "127.0.0.1:1"));
    assert_null(strstr(err.message, "hunter2"));
}

TEST(other_bytes_than_the_name_says_are_refused) {
    assert_refused(MISHAP_WRONG_BYTES, ERR_DIGEST_MISMATCH, "other bytes");
}

TEST(a_longer_body_than_the_job_says_is_refused) {
    assert_refused(MISHAP_TOO_LONG, ERR_DIGEST_MISMATCH, "longer");
}

TEST(a_body_without_an_end_is_left) {
    assert_refused(MISHAP_ENDLESS, ERR_DIGEST_MISMATCH, "longer");
}

TEST(a_shorter_blob_than_the_job_says_is_refused) {
    struct digest digest = blob_server_add(server, payload);
    assert_int_equal(fetch(&digest, payload.size + 1), ERR_DIGEST_MISMATCH);
}

TEST(a_redirect_is_followed) {
    struct digest digest = blob_server_add(server, payload);
    blob_server_set_mishap(server, MISHAP_REDIRECT);
    assert_int_equal(fetch(&digest, payload.size), ERR_OK);
    assert_int_equal(blob_server_gets(server), 2);
}

TEST(a_redirect_to_a_file_is_not_followed) {
    assert_refused(MISHAP_REDIRECT_TO_FILE, ERR_IO, "HTTP status 302");
}

TEST(a_redirect_to_another_port_is_not_followed_and_gets_no_password) {
    struct blob_server *other = blob_server_start();
    struct digest digest = blob_server_add(server, payload);
    blob_server_add(other, payload);
    blob_server_redirect(server, blob_server_url(other));
    assert_int_equal(fetch(&digest, payload.size), ERR_IO);
    assert_int_equal(blob_server_gets(other), 0);
    blob_server_stop(other);
}

TEST(a_body_that_drips_is_left_after_the_timeout) {
    struct digest digest = blob_server_add(server, payload);
    blobs_destroy(blobs);
    connect_for(blob_server_url(server), 200);
    blob_server_set_mishap(server, MISHAP_DRIP);
    assert_int_equal(fetch(&digest, payload.size), ERR_IO);
}

TEST(redirects_come_to_an_end) {
    assert_refused(MISHAP_REDIRECT_FOR_EVER, ERR_IO, "HTTP status 302");
    assert_int_equal(blob_server_gets(server), 1 + 3 + 1); /* first, redirects, the good one */
}

TEST(what_is_put_is_at_the_store) {
    struct digest digest = digest_of(payload);
    assert_int_equal(blobs_put(blobs, &digest, payload, &err), ERR_OK);
    assert_int_equal(blobs_put(blobs, &digest, payload, &err), ERR_OK);
    assert_true(blob_server_has(server, payload));
    assert_true(blob_server_saw_credentials(server));
    assert_int_equal(fetch(&digest, payload.size), ERR_OK);
}

TEST(an_upload_that_fails_or_is_redirected_is_an_error) {
    static const enum mishap mishaps[] = {MISHAP_STATUS_500, MISHAP_REDIRECT_TO_FILE};
    struct digest digest = digest_of(payload);
    for (size_t i = 0; i < sizeof mishaps / sizeof mishaps[0]; i++) {
        blob_server_set_mishap(server, mishaps[i]);
        assert_int_equal(blobs_put(blobs, &digest, payload, &err), ERR_IO);
        assert_non_null(strstr(err.message, "PUT http://127.0.0.1:"));
        assert_null(strstr(err.message, "hunter2"));
    }
    assert_false(blob_server_has(server, payload));
}

static void *fetch_one(void *digest) {
    struct blob blob;
    struct error thread_err;
    enum err code = blob_open(blobs, digest, payload.size, &blob, &thread_err);
    bool is_right = code == ERR_OK && slice_equal(blob.bytes, payload);
    blob_fini(&blob);
    return is_right ? digest : NULL;
}

TEST(sixteen_threads_that_want_one_blob_fetch_it_once) {
    struct digest digest = blob_server_add(server, payload);
    pthread_t threads[16];
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fetch_one, &digest), 0);
    for (size_t i = 0; i < 16; i++) {
        void *right;
        pthread_join(threads[i], &right);
        assert_non_null(right);
    }
    assert_int_equal(blob_server_gets(server), 1);
}

TEST(a_url_of_another_kind_is_refused_without_being_shown) {
    static const char *const urls[] = {
        "ftp://me:hunter2@host/", "me:hunter2@host", "http://:hunter2 @/", "file:///hunter2"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct blobs_options options = {
            .url = urls[i], .cache_dir = cache_dir, .bytes_max = 1, .timeout_ms = 1000};
        struct blobs *none = NULL;
        assert_int_equal(blobs_create(&options, &none, &err), ERR_CONFIG);
        assert_null(strstr(err.message, "hunter2"));
        assert_null(none);
    }
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(a_blob_is_fetched_with_the_credentials_of_the_url),
        S(a_blob_that_the_store_does_not_have_is_missing),
        S(a_store_in_trouble_is_worth_another_try),
        S(a_connection_that_is_cut_is_worth_another_try),
        S(a_store_that_is_not_there_is_worth_another_try),
        S(other_bytes_than_the_name_says_are_refused),
        S(a_longer_body_than_the_job_says_is_refused),
        S(a_body_without_an_end_is_left),
        S(a_shorter_blob_than_the_job_says_is_refused),
        S(a_redirect_is_followed),
        S(a_redirect_to_a_file_is_not_followed),
        S(a_redirect_to_another_port_is_not_followed_and_gets_no_password),
        S(a_body_that_drips_is_left_after_the_timeout),
        S(redirects_come_to_an_end),
        S(what_is_put_is_at_the_store),
        S(an_upload_that_fails_or_is_redirected_is_an_error),
        S(sixteen_threads_that_want_one_blob_fetch_it_once),
        S(a_url_of_another_kind_is_refused_without_being_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Proves: how much of an answer is taken, what a failed request is told, and that requests at once
 * have connections of their own. */
#include "http/client.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "blobs/folder.h"
#include "support/blob_server.h"
#include "testing.h"

static const char text[] = "an answer that somebody waits for";
static struct slice payload;
static struct blob_server *server;
static struct http_client *client;
static char path[BLOB_NAME_SIZE];
static struct error err;

static int set_up(void **state) {
    payload = slice_of(text, sizeof text);
    server = blob_server_start();
    const struct http_client_options options = {
        .url = blob_server_url(server), .setting = "here.url", .timeout_ms = 60000};
    assert_int_equal(http_client_create(&options, &client, &err), ERR_OK);
    struct digest digest = blob_server_add(server, payload);
    (void)blob_name(&digest, path);
    return 0;
}

static int tear_down(void **state) {
    http_client_destroy(client);
    blob_server_stop(server);
    return 0;
}

static enum err count_bytes(void *context, struct slice piece, struct error *piece_err) {
    size_t *bytes = context;
    *bytes += piece.size;
    return ERR_OK;
}

static enum err refuse(void *context, struct slice piece, struct error *piece_err) {
    return error_set(piece_err, ERR_BAD_JOB, 0, "", "not this");
}

static enum err get(http_take *take, uint64_t body_max, size_t *bytes, struct http_answer *ret) {
    const struct http_request request = {
        .method = HTTP_GET, .path = path, .body_max = body_max, .take = take, .context = bytes};
    *bytes = 0;
    return http_client_send(client, &request, ret, &err);
}

TEST(an_answer_is_taken_up_to_as_many_bytes_as_it_may_have) {
    struct http_answer answer;
    size_t bytes;
    assert_int_equal(get(count_bytes, sizeof text, &bytes, &answer), ERR_OK);
    assert_int_equal(bytes, sizeof text);
    assert_int_equal(answer.status, 200);
    assert_false(answer.is_too_long);
    assert_int_equal(get(count_bytes, sizeof text - 1, &bytes, &answer), ERR_IO);
    assert_true(answer.is_too_long);
    blob_server_set_mishaps(server, MISHAP_ENDLESS, 1); /* it does not say how long it is */
    assert_int_equal(get(count_bytes, sizeof text, &bytes, &answer), ERR_IO);
    assert_true(answer.is_too_long);
    assert_in_range(bytes, 0, sizeof text);
}

TEST(an_answer_that_nobody_takes_may_have_any_length) {
    const struct http_request request = {.method = HTTP_PUT, .path = path, .body = payload};
    struct http_answer answer;
    assert_int_equal(http_client_send(client, &request, &answer, &err), ERR_OK);
    assert_int_equal(answer.status, 201);
    assert_false(answer.is_too_long);
}

TEST(who_takes_an_answer_ends_the_request_with_an_error_of_its_own) {
    struct http_answer answer;
    size_t bytes;
    assert_int_equal(get(refuse, sizeof text, &bytes, &answer), ERR_BAD_JOB);
    assert_string_equal(err.message, "not this");
    assert_false(answer.is_too_long);
}

TEST(a_refusal_tells_its_status_and_where_to_look_and_its_body_is_not_taken) {
    struct http_answer answer;
    size_t bytes;
    blob_server_set_mishaps(server, MISHAP_STATUS_403, 1);
    assert_int_equal(get(count_bytes, sizeof text, &bytes, &answer), ERR_IO);
    assert_int_equal(answer.status, 403);
    assert_int_equal(err.native, 403);
    assert_int_equal(bytes, 0);
    assert_non_null(strstr(err.message, "refused, HTTP status 403"));
    assert_non_null(strstr(err.fix, "here.url"));
    blob_server_set_mishaps(server, MISHAP_CUT, 1);
    assert_int_equal(get(count_bytes, sizeof text, &bytes, &answer), ERR_IO);
    assert_int_equal(answer.status, 200);
    assert_false(answer.is_too_long);
    assert_null(strstr(err.message, "refused"));
}

/* More than the client keeps connections for: each is under way until all are. */
enum { REQUESTS = 24 };

static pthread_barrier_t all_came;

static void wait_for_all(void *context) {
    (void)pthread_barrier_wait(&all_came);
}

static void *request_one(void *context) {
    const struct http_request request = {.method = HTTP_GET,
        .path = path,
        .body_max = sizeof text,
        .take = count_bytes,
        .context = context};
    struct http_answer answer;
    struct error thread_err;
    return http_client_send(client, &request, &answer, &thread_err) == ERR_OK ? context : NULL;
}

TEST(many_requests_at_once_are_all_under_way_and_so_are_the_next_ones) {
    assert_int_equal(pthread_barrier_init(&all_came, NULL, REQUESTS), 0);
    blob_server_set_gate(server, wait_for_all, NULL);
    for (int round = 0; round < 2; round++) {
        pthread_t threads[REQUESTS];
        size_t bytes[REQUESTS] = {0};
        for (size_t i = 0; i < REQUESTS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, request_one, &bytes[i]), 0);
        for (size_t i = 0; i < REQUESTS; i++) {
            void *answered;
            pthread_join(threads[i], &answered);
            assert_non_null(answered);
            assert_int_equal(bytes[i], sizeof text);
        }
    }
    pthread_barrier_destroy(&all_came);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(F(an_answer_is_taken_up_to_as_many_bytes_as_it_may_have),
    F(an_answer_that_nobody_takes_may_have_any_length),
    F(who_takes_an_answer_ends_the_request_with_an_error_of_its_own),
    F(a_refusal_tells_its_status_and_where_to_look_and_its_body_is_not_taken),
    F(many_requests_at_once_are_all_under_way_and_so_are_the_next_ones))

/* The pages as a client on the network sees them. */
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/loopback.h"
#include "support/scratch.h"
#include "support/wait.h"
#include "testing.h"

enum { ANSWER_BYTES = 4096, LOOK_MS = 10 };

static bool write_count(void *context, bool is_verbose, FILE *page) {
    int *count = context;
    fprintf(page, "asked %d times%s\n", ++*count, is_verbose ? ", with all" : "");
    return true;
}

static bool write_no(void *context, bool is_verbose, FILE *page) {
    fprintf(page, "no\n");
    return false;
}

enum { LARGE_BYTES = 4 << 20 };

static bool write_large(void *context, bool is_verbose, FILE *page) {
    fprintf(page, "%0*d", LARGE_BYTES, 0);
    return true;
}

static const struct http_page pages[] = {{"/count", "text/plain", false, write_count},
    {"/no", "text/plain", false, write_no}, {"/large", "text/plain", false, write_large},
    {"/public", "text/plain", true, write_count}, {0}};

struct fixture {
    struct sockaddr_in at;
    int reserved; /* the socket that keeps the port ours */
    char address[32];
    int count;
    char *folder, *token_file;
    struct http_options options;
    struct http *http;
};

static int set_up(void **state) {
    static struct fixture fixture;
    struct error err;
    fixture = (struct fixture){0};
    fixture.reserved = loopback_reserve(&fixture.at);
    snprintf(fixture.address, sizeof fixture.address, "127.0.0.1:%d", ntohs(fixture.at.sin_port));
    fixture.folder = scratch_create();
    assert_true(asprintf(&fixture.token_file, "%s/token", fixture.folder) > 0);
    fixture.options = (struct http_options){
        .address = fixture.address, .token_file = "", .pages = pages, .context = &fixture.count};
    assert_int_equal(http_listen(&fixture.options, &fixture.http, &err), ERR_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    http_close(fixture->http);
    close(fixture->reserved);
    scratch_remove(fixture->folder);
    free(fixture->token_file);
    return 0;
}

static void write_token(const struct fixture *fixture, const char *token) {
    FILE *file = fopen(fixture->token_file, "we");
    assert_non_null(file);
    assert_true(fputs(token, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Listens again, and asks for a token. */
static int set_up_with_token(void **state) {
    struct error err;
    (void)set_up(state);
    struct fixture *fixture = *state;
    http_close(fixture->http);
    write_token(fixture, "s3cret\n");
    fixture->options.token_file = fixture->token_file;
    assert_int_equal(http_listen(&fixture->options, &fixture->http, &err), ERR_OK);
    return 0;
}

static int connect_to(const struct fixture *fixture, const char *request) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr *at = (const struct sockaddr *)&fixture->at;
    assert_int_equal(connect(fd, at, sizeof fixture->at), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
    return fd;
}

/* Serves until the connection is closed, and collects what came through it. */
static void serve_until_closed(const struct fixture *fixture, int fd, char answer[ANSWER_BYTES]) {
    size_t used = 0;
    for (struct wait wait = wait_begin(); wait_goes_on(&wait);) {
        struct pollfd fds[2] = {
            {.fd = http_fd(fixture->http), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        poll(fds, 2, LOOK_MS);
        http_serve(fixture->http);
        ssize_t count = recv(fd, answer + used, ANSWER_BYTES - 1 - used, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN) continue;
        if (count > 0) {
            used += (size_t)count;
            continue;
        }
        answer[used] = 0;
        close(fd);
        return;
    }
    fail_msg("%s", "the connection is still open");
}

static void ask(const struct fixture *fixture, const char *request, char answer[ANSWER_BYTES]) {
    serve_until_closed(fixture, connect_to(fixture, request), answer);
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

#define END " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"

/* A browser that is led here by somebody else's page does nothing with what it finds. */
TEST(every_answer_says_what_a_browser_may_do_with_it) {
    static const char *const requests[] = {"GET /count" END, "GET /nothing" END, "POST /count" END};
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        ask(*state, requests[i], answer);
        assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'\r\n"));
        assert_non_null(strstr(answer, "X-Content-Type-Options: nosniff\r\n"));
        assert_non_null(strstr(answer, "Referrer-Policy: no-referrer\r\n"));
    }
}

TEST(a_page_is_written_anew_for_each_who_asks) {
    char answer[ANSWER_BYTES];
    ask(*state, "GET /count" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
    assert_non_null(strcasestr(answer, "content-type: text/plain\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\nasked 1 times\n"));
    ask(*state, "GET /count?x=1" END, answer);
    assert_non_null(strstr(answer, "\r\n\r\nasked 2 times\n"));
}

TEST(a_page_that_says_what_is_wrong_says_so_to_machines_too) {
    char answer[ANSWER_BYTES];
    ask(*state, "GET /no" END, answer);
    assert_true(begins(answer, "HTTP/1.1 503"));
    assert_non_null(strstr(answer, "\r\n\r\nno\n"));
    ask(*state, "HEAD /no" END, answer);
    assert_true(begins(answer, "HTTP/1.1 503"));
    assert_null(strstr(answer, "\r\n\r\nno"));
}

TEST(who_asks_for_all_gets_all) {
    static const char *const asked[] = {
        "GET /count?verbose" END, "GET /count?verbose=1" END, "GET /count?x=2&verbose" END};
    static const char *const not_asked[] = {
        "GET /count?verbosely" END, "GET /count?x=verbose" END, "GET /count?%76" END};
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        ask(*state, asked[i], answer);
        assert_non_null(strstr(answer, ", with all\n"));
        ask(*state, not_asked[i], answer);
        assert_non_null(strstr(answer, "asked "));
        assert_null(strstr(answer, ", with all"));
    }
}

TEST(nobody_keeps_a_page_for_later) {
    char answer[ANSWER_BYTES];
    ask(*state, "GET /count" END, answer);
    assert_non_null(strcasestr(answer, "cache-control: no-store\r\n"));
}

TEST(only_the_refusal_of_a_method_names_those_that_are_allowed_and_asks_for_no_token) {
    char answer[ANSWER_BYTES];
    ask(*state, "POST /count" END, answer);
    assert_non_null(strcasestr(answer, "\r\nallow: GET, HEAD\r\n"));
    assert_null(strcasestr(answer, "\r\nwww-authenticate:"));
    ask(*state, "GET /count" END, answer);
    assert_null(strcasestr(answer, "\r\nallow:"));
    assert_null(strcasestr(answer, "\r\nwww-authenticate:"));
}

TEST(head_has_no_body) {
    char answer[ANSWER_BYTES];
    ask(*state, "HEAD /count" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
    assert_null(strstr(answer, "asked"));
}

TEST(what_is_no_page_or_no_question_is_refused) {
    char answer[ANSWER_BYTES];
    ask(*state, "GET /" END, answer);
    assert_true(begins(answer, "HTTP/1.1 404"));
    ask(*state, "GET /count/" END, answer);
    assert_true(begins(answer, "HTTP/1.1 404"));
    ask(*state, "DELETE /count" END, answer);
    assert_true(begins(answer, "HTTP/1.1 405"));
    ask(*state, "\x16\x03\x01 no HTTP at all\r\n\r\n", answer);
    assert_true(answer[0] == 0 || begins(answer, "HTTP/1.1 400"));
    assert_int_equal(((struct fixture *)*state)->count, 0);
}

TEST(who_never_ends_a_question_holds_nobody_up) {
    char answer[ANSWER_BYTES];
    int idle = connect_to(*state, "GET /cou");
    ask(*state, "GET /count" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
    close(idle);
}

/* Clients' questions never end, and each goes on whenever the server looks. */
TEST(a_crowd_that_asks_slowly_keeps_nobody_from_an_answer) {
    enum { CROWD = 100 };
    char answer[ANSWER_BYTES];
    int crowd[CROWD];
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = connect_to(*state, "GET /");
        for (int looks = 0; looks < 4; looks++) http_serve(((struct fixture *)*state)->http);
    }
    int fd = connect_to(*state, "GET /count" END);
    size_t used = 0;
    for (struct wait wait = wait_begin(); used == 0 && wait_goes_on(&wait);) {
        for (size_t i = 0; i < CROWD; i++) (void)send(crowd[i], "x", 1, MSG_NOSIGNAL);
        struct pollfd arrived = {.fd = http_fd(((struct fixture *)*state)->http), .events = POLLIN};
        poll(&arrived, 1, LOOK_MS);
        http_serve(((struct fixture *)*state)->http);
        ssize_t count = recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT);
        if (count > 0) used = (size_t)count;
    }
    answer[used] = 0;
    assert_true(begins(answer, "HTTP/1.1 200"));
    for (size_t i = 0; i < CROWD; i++) close(crowd[i]);
    close(fd);
}

TEST(a_question_without_end_is_cut) {
    enum { FLOOD_BYTES = 200000 };
    static char flood[FLOOD_BYTES + 1], answer[ANSWER_BYTES];
    memset(flood, 'x', FLOOD_BYTES);
    memcpy(flood, "GET /", 5);
    ask(*state, flood, answer);
    assert_true(answer[0] == 0 || begins(answer, "HTTP/1.1 4"));
}

TEST(an_address_that_cannot_be_had_is_a_mistake_of_the_configuration) {
    static const char *const addresses[] = {
        "", "9400", ":9400", "127.0.0.1:", "[::1]9400", "127.0.0.1:no", "192.0.2.1:9400", "[x]:1"};
    struct fixture *fixture = *state;
    struct http *other;
    struct error err;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        const struct http_options options = {
            .address = addresses[i], .token_file = "", .pages = pages};
        assert_int_equal(http_listen(&options, &other, &err), ERR_CONFIG);
        assert_non_null(strstr(err.message, addresses[i]));
    }
    assert_int_equal(http_listen(&fixture->options, &other, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "in use"));
}

/* ---- a token ---- */

#define BRINGING(secret)                                                                           \
    " HTTP/1.1\r\nHost: here\r\nConnection: close\r\nAuthorization: Bearer " secret "\r\n\r\n"

TEST(only_public_pages_are_for_those_without_the_token) {
    static const char *const denied[] = {"GET /count" END, "HEAD /count" END,
        "GET /count" BRINGING("s3cre"), "GET /count" BRINGING("S3CRET"), "GET /count" BRINGING(""),
        "GET /nothing" END, "DELETE /count" END};
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
        ask(*state, denied[i], answer);
        assert_true(begins(answer, "HTTP/1.1 401"));
        assert_non_null(strcasestr(answer, "www-authenticate: bearer\r\n"));
    }
    assert_int_equal(((struct fixture *)*state)->count, 0);
    ask(*state, "GET /public" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
    ask(*state, "GET /count" BRINGING("s3cret"), answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
    ask(*state, "GET /nothing" BRINGING("s3cret"), answer);
    assert_true(begins(answer, "HTTP/1.1 404"));
}

TEST(a_token_that_changes_counts_from_the_next_question_on) {
    char answer[ANSWER_BYTES];
    write_token(*state, "another\n");
    ask(*state, "GET /count" BRINGING("s3cret"), answer);
    assert_true(begins(answer, "HTTP/1.1 401"));
    ask(*state, "GET /count" BRINGING("another"), answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
}

TEST(a_token_that_cannot_be_read_lets_nobody_in) {
    char answer[ANSWER_BYTES];
    write_token(*state, "\n");
    ask(*state, "GET /count" BRINGING("s3cret"), answer);
    assert_true(begins(answer, "HTTP/1.1 503"));
    ask(*state, "GET /count" BRINGING(""), answer);
    assert_true(begins(answer, "HTTP/1.1 503"));
    assert_int_equal(unlink(((struct fixture *)*state)->token_file), 0);
    ask(*state, "GET /count" BRINGING("s3cret"), answer);
    assert_true(begins(answer, "HTTP/1.1 503"));
    ask(*state, "GET /public" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
}

TEST(nobody_listens_with_a_token_that_is_none) {
    struct fixture *fixture = *state;
    struct http *other;
    struct error err;
    fixture->options.token_file = fixture->folder;
    assert_int_equal(http_listen(&fixture->options, &other, &err), ERR_CONFIG);
    assert_non_null(strstr(err.fix, "http.token_file"));
}

/* ---- clients that mean harm ---- */

static void assert_still_answers(const struct fixture *fixture) {
    char answer[ANSWER_BYTES];
    ask(fixture, "GET /public" END, answer);
    assert_true(begins(answer, "HTTP/1.1 200"));
}

TEST(methods_that_nobody_knows_are_refused) {
    static const char *const odd[] = {"OPTIONS /count" END, "TRACE /count" END, "PUT /count" END,
        "PATCH /count" END, "CONNECT here:80" END, "get /count" END, "GETGETGET /count" END,
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "OPTIONS *" END};
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        ask(*state, odd[i], answer);
        assert_true(
            answer[0] == 0 || begins(answer, "HTTP/1.1 4") || begins(answer, "HTTP/1.1 505"));
    }
    assert_int_equal(((struct fixture *)*state)->count, 0);
}

TEST(a_body_is_not_waited_for) {
    char answer[ANSWER_BYTES];
    int fd = connect_to(*state, "POST /count HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
                                "Content-Length: 1000000000000\r\n\r\nbegins");
    serve_until_closed(*state, fd, answer);
    assert_true(begins(answer, "HTTP/1.1 405"));
    fd = connect_to(*state, "POST /count HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
                            "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx");
    serve_until_closed(*state, fd, answer);
    assert_true(begins(answer, "HTTP/1.1 4"));
    assert_still_answers(*state);
}

TEST(headers_without_end_are_cut) {
    enum { LINES = 4000 };
    static char flood[64 * LINES], answer[ANSWER_BYTES];
    size_t used = (size_t)sprintf(flood, "GET /count HTTP/1.1\r\nHost: here\r\n");
    for (int i = 0; i < LINES; i++) used += (size_t)sprintf(flood + used, "X-%d: %040d\r\n", i, i);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct fixture *fixture = *state;
    assert_int_equal(connect(fd, (const struct sockaddr *)&fixture->at, sizeof fixture->at), 0);
    (void)send(fd, flood, used, MSG_NOSIGNAL | MSG_DONTWAIT);
    serve_until_closed(fixture, fd, answer);
    assert_true(answer[0] == 0 || begins(answer, "HTTP/1.1 4"));
    assert_int_equal(fixture->count, 0);
    assert_still_answers(fixture);
}

/* Each has a page of its own under way, and takes nothing of it. */
TEST(who_never_reads_an_answer_keeps_nobody_from_one) {
    enum { CROWD = 40 };
    int crowd[CROWD];
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = connect_to(*state, "GET /large HTTP/1.1\r\nHost: here\r\n\r\n");
        for (int looks = 0; looks < 4; looks++) http_serve(((struct fixture *)*state)->http);
    }
    assert_still_answers(*state);
    for (size_t i = 0; i < CROWD; i++) close(crowd[i]);
    assert_still_answers(*state);
}

/* A small random number generator, the same in every run. */
static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

TEST(questions_with_random_bytes_end_nothing) {
    enum { QUESTIONS = 400 };
    static const char good[] = "GET /public?verbose=1&x=%20 HTTP/1.1\r\nHost: here\r\n"
                               "Authorization: Bearer x\r\nConnection: close\r\n\r\n";
    uint32_t seed = 1;
    for (int i = 0; i < QUESTIONS; i++) {
        char question[sizeof good];
        memcpy(question, good, sizeof good);
        for (uint32_t hits = next_random(&seed) % 4 + 1; hits > 0; hits--)
            question[next_random(&seed) % (sizeof good - 1)] = (char)next_random(&seed);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        const struct fixture *fixture = *state;
        assert_int_equal(connect(fd, (const struct sockaddr *)&fixture->at, sizeof fixture->at), 0);
        (void)send(fd, question, sizeof good - 1 - next_random(&seed) % 8, MSG_NOSIGNAL);
        for (int looks = 0; looks < 4; looks++) http_serve(fixture->http);
        close(fd);
    }
    assert_still_answers(*state);
}

#define WITH_TOKEN(name) cmocka_unit_test_setup_teardown(name, set_up_with_token, tear_down)
#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(every_answer_says_what_a_browser_may_do_with_it),
    F(a_page_is_written_anew_for_each_who_asks), F(head_has_no_body),
    F(a_page_that_says_what_is_wrong_says_so_to_machines_too), F(who_asks_for_all_gets_all),
    F(nobody_keeps_a_page_for_later),
    F(only_the_refusal_of_a_method_names_those_that_are_allowed_and_asks_for_no_token),
    F(what_is_no_page_or_no_question_is_refused), F(who_never_ends_a_question_holds_nobody_up),
    F(a_crowd_that_asks_slowly_keeps_nobody_from_an_answer), F(a_question_without_end_is_cut),
    F(an_address_that_cannot_be_had_is_a_mistake_of_the_configuration),
    WITH_TOKEN(only_public_pages_are_for_those_without_the_token),
    WITH_TOKEN(a_token_that_changes_counts_from_the_next_question_on),
    WITH_TOKEN(a_token_that_cannot_be_read_lets_nobody_in),
    F(nobody_listens_with_a_token_that_is_none), F(methods_that_nobody_knows_are_refused),
    F(a_body_is_not_waited_for), F(headers_without_end_are_cut),
    F(who_never_reads_an_answer_keeps_nobody_from_one), F(questions_with_random_bytes_end_nothing))

/* Proves: what waits for a collector is bounded, and what is dropped is counted. */
#include "trace/tracer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/aligned.h"
#include "support/loopback.h"
#include "testing.h"
#include "trace/record.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

enum { QUEUE_BYTES_MAX = 4 << 20, REQUEST_RECORDS_MAX = 256 };

static const struct identity identity = {.host = "here", .device = "a GPU", .version = "1.2.3"};
static struct counters *counters;
static struct tracer *tracer;
static atomic_uint failed_count;
static int collector; /* a socket at which nobody listens, unless a test does */

static struct header headers[1];
static struct delivery delivery;
static struct job job;

static void count_failed(void *context, const struct error *err) {
    assert_int_equal(err->code, ERR_IO);
    atomic_fetch_add(&failed_count, 1);
}

static int set_up(void **state) {
    struct sockaddr_in at;
    struct error err;
    char url[64];
    collector = loopback_reserve(&at);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    counters = aligned_calloc(_Alignof(struct counters), sizeof *counters);
    assert_non_null(counters);
    atomic_store(&failed_count, 0);
    const struct tracer_options options = {.url = url,
        .identity = &identity,
        .group = "workers",
        .results_topic = "gpu-results",
        .letters_topic = "gpu-dead-letters",
        .counters = counters,
        .on_failed = count_failed};
    assert_int_equal(tracer_start(&options, &tracer, &err), ERR_OK);
    headers[0] =
        (struct header){slice_of_text("traceparent"), slice_of_text("00-" TRACE "-" SPAN "-01")};
    delivery = (struct delivery){
        .position.topic = "gpu-jobs", .received_ns = 1, .header_count = 1, .headers = headers};
    job = (struct job){.delivery = &delivery, .id = slice_of_text("job-1")};
    job_init_arena(&job, 1 << 20);
    tracer_begin(tracer, &job);
    assert_non_null(job.trace);
    job.trace->ended_ns = job.trace->begun_ns + 1;
    return 0;
}

static int tear_down(void **state) {
    tracer_stop(tracer);
    arena_fini(&job.arena);
    free(counters);
    close(collector);
    return 0;
}

static uint64_t count_of(enum counter counter) {
    struct totals totals;
    counters_read(counters, &totals);
    return totals.of[counter];
}

static uint64_t dropped(void) {
    return count_of(COUNTER_traces_spans_dropped);
}

/* Of a job that came to no batch. */
enum { JOB_SPANS = SPANS_OF_JOB - 2 };

static void end_jobs(size_t count, const char *id) {
    job.id = slice_of_text(id);
    for (size_t i = 0; i < count; i++) tracer_end(tracer, &job, "", job.trace->ended_ns + 1);
}

TEST(what_waits_for_a_collector_that_is_away_takes_bounded_memory_and_the_rest_is_dropped) {
    enum { JOBS = 3 * QUEUE_BYTES_MAX / sizeof(struct record) };
    end_jobs(JOBS, "job-1");
    /* besides those that wait, a request has some */
    assert_in_range(JOBS - dropped() / JOB_SPANS, QUEUE_BYTES_MAX / sizeof(struct record),
        QUEUE_BYTES_MAX / sizeof(struct record) + REQUEST_RECORDS_MAX);
    tracer_stop(tracer);
    tracer = NULL;
    assert_int_equal(dropped(), JOBS * JOB_SPANS);
    assert_int_equal(count_of(COUNTER_traces_spans_exported), 0);
    assert_true(atomic_load(&failed_count) > 0);
}

TEST(only_a_batch_of_single_jobs_some_of_which_are_traced_is_noted) {
    struct job untraced = {.delivery = &delivery};
    struct job *jobs[] = {&untraced, &job};
    tracer_note_batch(tracer, jobs, 1);
    job.instances = 2; /* a slice of an array, which has many batches */
    tracer_note_batch(tracer, &jobs[1], 1);
    assert_int_equal(job.trace->batch, 0);
    job.instances = 0;
    tracer_note_batch(tracer, jobs, 2);
    assert_int_not_equal(job.trace->batch, 0);
    tracer_stop(tracer);
    tracer = NULL;
    assert_int_equal(dropped(), 1);
}

/* Takes the next request, whatever it says. Returns its connection, and how often it names the job.
 */
static int take_request(const char *id, size_t *found) {
    enum { BYTES_MAX = 4 << 20, WAIT_MS = 60000 };
    struct pollfd comes = {.fd = collector, .events = POLLIN};
    char *text = calloc(1, BYTES_MAX), *body = NULL, named[64];
    size_t used = 0, body_bytes = 0;
    assert_non_null(text);
    assert_int_equal(poll(&comes, 1, WAIT_MS), 1); /* otherwise nothing is asked again */
    int fd = accept(collector, NULL, NULL);
    assert_return_code(fd, 0);
    while (body == NULL || text + used < body + body_bytes) {
        ssize_t got = recv(fd, text + used, BYTES_MAX - 1 - used, 0);
        assert_true(got > 0);
        used += (size_t)got;
        if (body != NULL || (body = strstr(text, "\r\n\r\n")) == NULL) continue;
        assert_non_null(strstr(text, "\r\nContent-Type: application/json\r\n"));
        assert_null(strstr(text, "\r\nExpect:"));
        body += 4;
        body_bytes = strtoul(strstr(text, "Content-Length:") + 15, NULL, 10);
    }
    snprintf(named, sizeof named, "\"stringValue\":\"%s\"", id);
    *found = 0;
    for (const char *at = body; (at = strstr(at, named)) != NULL; at++) ++*found;
    free(text);
    return fd;
}

/* Takes the next request and answers it. Returns how often it names the job. */
static size_t answer(const char *status, const char *id) {
    char line[128];
    size_t found;
    int fd = take_request(id, &found);
    int size = snprintf(
        line, sizeof line, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
    assert_int_equal(send(fd, line, (size_t)size, MSG_NOSIGNAL), size);
    close(fd);
    return found;
}

TEST(an_answer_without_an_end_is_not_read_for_long) {
    enum { READ_BYTES_MAX = 64 << 20 }; /* with what lies in sockets */
    static const char head[] = "HTTP/1.1 200 Fine\r\nConnection: close\r\n\r\n";
    static const char more[1 << 16];
    size_t found, sent = 0;
    assert_return_code(listen(collector, 8), 0);
    end_jobs(REQUEST_RECORDS_MAX, "job-1");
    int fd = take_request("job-1", &found);
    assert_true(send(fd, head, sizeof head - 1, MSG_NOSIGNAL) > 0);
    for (ssize_t size;
         sent < READ_BYTES_MAX && (size = send(fd, more, sizeof more, MSG_NOSIGNAL)) > 0;)
        sent += (size_t)size;
    close(fd);
    assert_true(sent < READ_BYTES_MAX);
    tracer_stop(tracer);
    tracer = NULL;
    assert_int_equal(dropped(), REQUEST_RECORDS_MAX * JOB_SPANS);
    assert_int_equal(atomic_load(&failed_count), 1);
}

/* As many jobs as one request takes are sent at once; the next ones wait behind them. */
static void assert_asked_again(const char *status, bool is_asked_again) {
    void *none = NULL;
    (void)set_up(&none);
    assert_return_code(listen(collector, 8), 0);
    end_jobs(REQUEST_RECORDS_MAX, "first");
    assert_int_equal(answer(status, "first"), REQUEST_RECORDS_MAX);
    if (!is_asked_again) end_jobs(REQUEST_RECORDS_MAX, "next");
    const char *id = is_asked_again ? "first" : "next";
    assert_int_equal(answer("200 Fine", id), REQUEST_RECORDS_MAX);
    tracer_stop(tracer);
    tracer = NULL;
    assert_int_equal(count_of(COUNTER_traces_spans_exported), REQUEST_RECORDS_MAX * JOB_SPANS);
    assert_int_equal(dropped(), is_asked_again ? 0 : REQUEST_RECORDS_MAX * JOB_SPANS);
    assert_int_equal(atomic_load(&failed_count), 1);
    (void)tear_down(&none);
}

TEST(a_collector_that_may_take_spans_later_is_asked_again) {
    static const char *const statuses[] = {"429 Too Many", "502 Bad", "504 Late"};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        assert_asked_again(statuses[i], true);
}

TEST(a_collector_that_refuses_spans_is_not_asked_again) {
    static const char *const statuses[] = {"400 Bad", "428 Wanted", "430 No", "501 No", "505 No"};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        assert_asked_again(statuses[i], false);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(F(what_waits_for_a_collector_that_is_away_takes_bounded_memory_and_the_rest_is_dropped),
    F(only_a_batch_of_single_jobs_some_of_which_are_traced_is_noted),
    F(an_answer_without_an_end_is_not_read_for_long),
    T(a_collector_that_may_take_spans_later_is_asked_again),
    T(a_collector_that_refuses_spans_is_not_asked_again))

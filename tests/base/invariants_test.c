/* Bounds hold without assert(): this test and the units beside it are compiled with NDEBUG. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/timers.h"
#include "decode/walk.h"
#include "testing.h"

#ifndef NDEBUG
#error "what release builds do is tested as release builds are compiled"
#endif

static void add_one_timer_too_many(void) {
    static int items[3];
    struct timers *timers = timers_create(2);
    for (int i = 0; i < 3; i++) timers_add(timers, 1, &items[i]);
}

static void go_one_place_too_deep(void) {
    static struct walk walk;
    for (int i = 0; i <= WALK_DEPTH_MAX; i++) walk_enter_index(&walk, 0);
}

static void leave_a_place_that_was_not_entered(void) {
    static struct walk walk;
    walk_leave(&walk);
}

static void fill_an_error_that_is_none(void) {
    struct error err;
    (void)!error_set(&err, ERR_OK, 0, "", "nothing");
}

static void push_more_than_there_can_be(void) {
    int items[2];
    struct queue *queue = queue_create(1);
    for (int i = 0; i < 2; i++) queue_must_push(queue, &items[i]);
}

static void push_after_the_last(void) {
    int item;
    struct queue *queue = queue_create(1);
    queue_close(queue);
    queue_must_push(queue, &item);
}

/* Runs `act` in a process of its own: how that ended, and what it said. */
static int end_of(void (*act)(void), char *said, size_t size) {
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_ends[1], STDERR_FILENO);
        log_init(LOG_INFO, LOG_TEXT);
        act();
        _exit(0);
    }
    close(pipe_ends[1]);
    size_t used = 0;
    ssize_t count;
    while (used + 1 < size && (count = read(pipe_ends[0], said + used, size - used - 1)) > 0)
        used += (size_t)count;
    said[used] = 0;
    close(pipe_ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_ends(void (*act)(void), const char *message) {
    char said[4096];
    int status = end_of(act, said, sizeof said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, message));
}

TEST(a_heap_of_timers_that_is_full_ends_the_process_before_it_is_overrun) {
    assert_ends(add_one_timer_too_many, "broken invariant: a heap of timers has room (timers.c:");
}

TEST(a_walk_ends_the_process_at_its_deepest_place) {
    assert_ends(go_one_place_too_deep, "broken invariant: a walk goes no deeper");
    assert_ends(leave_a_place_that_was_not_entered, "broken invariant: a walk leaves what it");
}

TEST(an_error_without_a_code_ends_the_process) {
    assert_ends(fill_an_error_that_is_none, "broken invariant: an error has a code");
}

TEST(a_queue_for_all_there_can_be_ends_the_process_where_it_would_wait) {
    assert_ends(push_more_than_there_can_be, "broken invariant: a queue has room for all items");
    assert_ends(push_after_the_last, "broken invariant: a queue is closed after the last push");
}

RUN_TESTS(cmocka_unit_test(a_heap_of_timers_that_is_full_ends_the_process_before_it_is_overrun),
    cmocka_unit_test(a_walk_ends_the_process_at_its_deepest_place),
    cmocka_unit_test(an_error_without_a_code_ends_the_process),
    cmocka_unit_test(a_queue_for_all_there_can_be_ends_the_process_where_it_would_wait))

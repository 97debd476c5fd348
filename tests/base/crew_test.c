#include "base/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/pulse.h"
#include "base/queue.h"
#include "testing.h"

enum { COUNT = 4 };

/* Of all threads that are started, those from this one on are refused; see CMakeLists.txt. */
static int allowed = INT32_MAX;

int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    return allowed-- > 0 ? __real_pthread_create(thread, attributes, run, context) : EAGAIN;
}

struct work {
    struct queue *queue;
    atomic_uint runs[COUNT];
    char names[COUNT][16];
};

static void run(void *context, uint32_t index) {
    struct work *work = context;
    void *item;
    atomic_fetch_add(&work->runs[index], 1);
    pthread_getname_np(pthread_self(), work->names[index], sizeof work->names[index]);
    while (queue_pop(work->queue, &item, 1, -1) == 1) {
    }
}

static struct crew *start(struct work *work, uint32_t count) {
    struct error err;
    struct crew *crew = NULL;
    const struct crew_options options = {
        .name = "test", .count = count, .run = run, .context = work};
    *work = (struct work){.queue = queue_create(1)};
    allowed = INT32_MAX;
    assert_int_equal(crew_start(&options, &crew, &err), ERR_OK);
    assert_int_equal(crew_count(crew), count);
    return crew;
}

static void end(struct work *work, struct crew **crew) {
    queue_close(work->queue);
    crew_join(crew);
    assert_null(*crew);
    queue_destroy(work->queue);
}

TEST(each_thread_runs_once_with_an_index_and_a_name_of_its_own) {
    struct work work;
    struct crew *crew = start(&work, COUNT);
    end(&work, &crew);
    for (int i = 0; i < COUNT; i++) {
        char name[24];
        snprintf(name, sizeof name, "test-%d", i);
        assert_int_equal(work.runs[i], 1);
        assert_string_equal(work.names[i], name);
    }
}

TEST(a_crew_of_one_has_no_number) {
    struct work work;
    struct crew *crew = start(&work, 1);
    end(&work, &crew);
    assert_string_equal(work.names[0], "test");
}

TEST(a_crew_of_nobody_ends_at_once) {
    struct work work;
    struct crew *crew = start(&work, 0);
    crew_join(&crew);
    assert_null(crew);
    crew_join(&crew); /* and again */
    assert_int_equal(crew_count(crew), 0);
    queue_destroy(work.queue);
}

/* The queue stays open: a thread that ran would never be joined. */
TEST(where_a_thread_is_refused_none_runs_and_the_error_says_how_many_there_were) {
    for (int refused = 0; refused < COUNT; refused++) {
        struct work work = {.queue = queue_create(1)};
        const struct crew_options options = {
            .name = "test", .count = COUNT, .run = run, .context = &work};
        struct crew *crew = NULL;
        struct error err;
        char said[64];
        allowed = refused;
        assert_int_equal(crew_start(&options, &crew, &err), ERR_NO_MEMORY);
        assert_null(crew);
        for (int i = 0; i < COUNT; i++) assert_int_equal(work.runs[i], 0);
        snprintf(said, sizeof said, "only %d of %d threads named 'test'", refused, COUNT);
        assert_memory_equal(err.message, said, strlen(said));
        assert_int_equal(err.native, EAGAIN);
        assert_non_null(strstr(err.fix, "ulimit -u"));
        queue_destroy(work.queue);
    }
}

static void busy(void *context, uint32_t index) {
    pulse_busy();
}

TEST(its_threads_have_a_pulse_of_its_name_and_leave_it_idle) {
    static struct pulse pulses[PULSE_COUNT];
    const struct crew_options options = {.name = "test", .count = COUNT, .run = busy};
    struct crew *crew;
    struct error err;
    allowed = INT32_MAX;
    pulse_keep(pulses);
    assert_int_equal(crew_start(&options, &crew, &err), ERR_OK);
    crew_join(&crew);
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(pulses[i].name, "test");
        assert_int_equal(pulses[i].busy_ns, 0);
    }
    assert_string_equal(pulses[COUNT].name, "");
}

RUN_TESTS(T(each_thread_runs_once_with_an_index_and_a_name_of_its_own),
    T(a_crew_of_one_has_no_number), T(a_crew_of_nobody_ends_at_once),
    T(where_a_thread_is_refused_none_runs_and_the_error_says_how_many_there_were),
    T(its_threads_have_a_pulse_of_its_name_and_leave_it_idle))

/* Waiters that sleep, and those that spin: each test runs with both. */
#include "base/wakeup.h"

#include <errno.h>

#include "base/clock.h"
#include "support/wait.h"
#include "testing.h"

enum { WAITERS = 4, WAIT_MS = 5, TURNS = 2000 };

/* What is waited for. */
struct place {
    pthread_mutex_t lock;
    struct wakeup wakeup;
    int tokens, waiting;
    bool is_over;
};

static struct place place;

static void open_place(bool spins) {
    place = (struct place){.tokens = 0};
    pthread_mutex_init(&place.lock, NULL);
    wakeup_init(&place.wakeup, spins);
}

static void close_place(void) {
    wakeup_fini(&place.wakeup);
    pthread_mutex_destroy(&place.lock);
}

/* Takes tokens until the end. */
static void *take_tokens(void *taken) {
    pthread_mutex_lock(&place.lock);
    while (!place.is_over || place.tokens > 0) {
        if (place.tokens > 0) {
            place.tokens--;
            *(int *)taken += 1;
            continue;
        }
        place.waiting++;
        wakeup_wait_until(&place.wakeup, &place.lock, UINT64_MAX);
        place.waiting--;
    }
    pthread_mutex_unlock(&place.lock);
    return NULL;
}

static void add_token(void) {
    pthread_mutex_lock(&place.lock);
    place.tokens++;
    wakeup_signal(&place.wakeup);
    pthread_mutex_unlock(&place.lock);
}

static int count_waiters(void) {
    pthread_mutex_lock(&place.lock);
    int count = place.waiting;
    pthread_mutex_unlock(&place.lock);
    return count;
}

static void wait_for_waiters(int count) {
    WAIT_FOR(count_waiters(), >=, count);
}

static void end_all(pthread_t *threads, size_t count) {
    pthread_mutex_lock(&place.lock);
    place.is_over = true;
    wakeup_broadcast(&place.wakeup);
    pthread_mutex_unlock(&place.lock);
    for (size_t i = 0; i < count; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void wake_one_after_another(bool spins) {
    pthread_t thread;
    int taken = 0;
    open_place(spins);
    assert_int_equal(pthread_create(&thread, NULL, take_tokens, &taken), 0);
    for (int i = 0; i < TURNS; i++) {
        if (i % 2 == 0) wait_for_waiters(1);
        add_token();
    }
    end_all(&thread, 1);
    assert_int_equal(taken, TURNS);
    close_place();
}

TEST(every_signal_is_heeded_whether_it_comes_before_the_wait_or_during_it) {
    wake_one_after_another(false);
    wake_one_after_another(true);
}

static void wake_all(bool spins) {
    pthread_t threads[WAITERS];
    int taken[WAITERS] = {0};
    open_place(spins);
    for (size_t i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_tokens, &taken[i]), 0);
    wait_for_waiters(WAITERS);
    end_all(threads, WAITERS);
    for (size_t i = 0; i < WAITERS; i++) assert_int_equal(taken[i], 0);
    close_place();
}

TEST(a_broadcast_wakes_all_who_wait) {
    wake_all(false);
    wake_all(true);
}

static void wait_in_vain(bool spins) {
    open_place(spins);
    pthread_mutex_lock(&place.lock);
    uint64_t until_ns = clock_ns_in(WAIT_MS);
    while (clock_ns() < until_ns) wakeup_wait_until(&place.wakeup, &place.lock, until_ns);
    wakeup_wait_until(&place.wakeup, &place.lock, 1); /* over already */
    assert_int_equal(pthread_mutex_trylock(&place.lock), EBUSY);
    pthread_mutex_unlock(&place.lock);
    close_place();
}

TEST(a_wait_ends_when_its_time_is_over_and_has_the_lock_again) {
    wait_in_vain(false);
    wait_in_vain(true);
}

RUN_TESTS(T(every_signal_is_heeded_whether_it_comes_before_the_wait_or_during_it),
    T(a_broadcast_wakes_all_who_wait), T(a_wait_ends_when_its_time_is_over_and_has_the_lock_again))

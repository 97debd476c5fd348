#include "base/thread_number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

static atomic_uint_fast64_t taken; /* a bit for each number that is given out again */
static atomic_uint next = THREAD_NUMBERS;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* of a number + 1 that is given back when its thread ends */
_Thread_local unsigned thread_number_known;

static void give_back(void *number) {
    thread_number_known = 0; /* what else ends with the thread may ask again */
    unsigned bit = (unsigned)(uintptr_t)number - 1;
    /* release: pairs with the acquire in take(); the next owner sees what this one wrote */
    atomic_fetch_and_explicit(&taken, ~(UINT64_C(1) << bit), memory_order_release);
}

static void create_key(void) {
    /* relaxed: pthread_once() publishes it. Without a key none is given out again. */
    if (pthread_key_create(&key, give_back) != 0)
        atomic_store_explicit(&taken, UINT64_MAX, memory_order_relaxed);
}

static unsigned take(void) {
    uint_fast64_t seen = atomic_load_explicit(&taken, memory_order_relaxed);
    while (seen != UINT64_MAX) {
        unsigned bit = (unsigned)__builtin_ctzll(~seen);
        /* acquire: pairs with the release in give_back() */
        if (atomic_compare_exchange_weak_explicit(&taken, &seen, seen | UINT64_C(1) << bit,
                memory_order_acquire, memory_order_relaxed))
            return bit;
    }
    /* relaxed: only that numbers differ matters */
    return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

unsigned thread_number_take(void) {
    pthread_once(&once, create_key);
    unsigned number = take();
    thread_number_known = number + 1;
    if (number < THREAD_NUMBERS)
        (void)pthread_setspecific(key, (void *)(uintptr_t)thread_number_known);
    return number;
}

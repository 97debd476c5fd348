/* What librdkafka, which is not compiled with it, needs in builds with the thread sanitizer.
 *
 * librdkafka starts its threads with thrd_create(). The sanitizer watches the functions of POSIX
 * alone: a thread that it has not seen start has no state there and crashes at its first callback
 * into our code. The C library's types are those of POSIX under another name, so that functions
 * which are not replaced here work on the same objects.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t must be a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t must be a pthread_cond_t");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "thrd_t must be a pthread_t");
_Static_assert(sizeof(once_flag) == sizeof(pthread_once_t), "once_flag must be a pthread_once_t");

/* The library's atomics are invisible to the sanitizer, and so is the order that they make, such as
 * that of the last use of a lock before it is freed. What it does with its own memory and locks is
 * left out; the order that its locks and threads make is seen, and so is all of our code that it
 * calls.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "called_from_lib:librdkafka.so\nrace:^mtx_\nrace:^cnd_\n";
}

struct start {
    thrd_start_t run;
    void *context;
};

static int status_of(int error) {
    switch (error) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}

static void *run_thread(void *context) {
    struct start start = *(struct start *)context;
    free(context);
    return (void *)(intptr_t)start.run(start.context);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *context) {
    struct start *start = malloc(sizeof *start);
    if (start == NULL) return thrd_nomem;
    *start = (struct start){.run = run, .context = context};
    int error = pthread_create(thread, NULL, run_thread, start);
    if (error != 0) free(start);
    return status_of(error);
}

int thrd_join(thrd_t thread, int *ret) {
    void *status = NULL;
    int error = pthread_join(thread, &status);
    if (ret != NULL) *ret = (int)(intptr_t)status;
    return status_of(error);
}

void call_once(once_flag *flag, void (*run)(void)) {
    pthread_once((pthread_once_t *)flag, run);
}

int mtx_init(mtx_t *mutex, int type) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if ((type & mtx_recursive) != 0)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return status_of(error);
}

void mtx_destroy(mtx_t *mutex) {
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex) {
    return status_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex) {
    return status_of(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex) {
    return status_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition) {
    return status_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition) {
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition) {
    return status_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition) {
    return status_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return status_of(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

/* Weak: where broker/client.c is linked, it is that one's. */
__attribute__((weak)) int cnd_timedwait(
    cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    return status_of(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

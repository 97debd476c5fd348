/**
 * Lets one thread of a world run at a time, chosen by a seed, under a clock that moves only when
 * all of them wait: the same seed makes the same history.
 *
 * A world is a process that forks workers. All of them share a region of memory at one address,
 * which holds the scheduler's slots, one for each thread, and the cluster (cluster.h). The thread
 * that runs holds the world, so whatever lies in the region needs no lock. A thread that waits
 * hands the world on (waits.c replaces what threads wait with).
 *
 * Threads: those of a world, while they run.
 */
#ifndef TESTS_WORLD_SCHEDULER_H
#define TESTS_WORLD_SCHEDULER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SCHEDULER_SLOTS = 512, SCHEDULER_FOREVER_MS = 3600 * 1000 };

struct slot;

/** Makes the region; the caller is the first thread. A process has one world in its life. It ends,
 * and tells what each thread waits for, once none has had a turn for two minutes of real time. */
void scheduler_begin(uint64_t seed);

/** Memory of the region, zeroed, which nothing gives back. */
void *scheduler_alloc(size_t size);

/** Of the world's one clock, which starts at a second. */
uint64_t scheduler_now_ns(void);

/** What wall clocks show, all of them, in nanoseconds since 1970; they can be set to another time.
 */
uint64_t scheduler_wall_ns(void);
void scheduler_shift_wall(int64_t ns);

/** A number below `bound`, drawn from the seed. */
uint64_t scheduler_draw(uint64_t bound);

/** Whether the calling thread belongs to a world. */
bool scheduler_is_on(void);

/* ---- waiting ---- */

/** Lets others run first. */
void scheduler_yield(void);

/** Like scheduler_yield(), now and then, so that locks are taken in other orders. */
void scheduler_maybe_yield(void);

/** Waits until scheduler_wake*() is called for `key`, or the clock reaches `until_ns`; UINT64_MAX:
 * no time limit. False when the time is over. */
bool scheduler_wait(const void *key, uint64_t until_ns);

/** Wakes those that wait for `key`: of this process, or of all for a key in the region. */
void scheduler_wake_one(const void *key);
void scheduler_wake_all(const void *key);

/** Waits until the clock has moved on so far. */
void scheduler_sleep_ns(uint64_t ns);

/* ---- threads and processes ---- */

/** As pthread_create() and pthread_join(), for a thread of this world. */
int scheduler_create(
    pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int scheduler_join(pthread_t thread, void **ret);

/** Forks a process whose first thread calls `run`, and ends with what it returns. */
pid_t scheduler_fork(int (*run)(void *context), void *context);

/** Ends the calling process at once, as _exit() does. */
_Noreturn void scheduler_exit(int status);

/** Kills a process between two steps of its threads. */
void scheduler_kill(pid_t process);

/** A process whose threads do not run until the given time. */
void scheduler_freeze(pid_t process, uint64_t until_ns);

/** Whether it is dead, or frozen. */
bool scheduler_is_silent(pid_t process);

/** How long the process has not run, or did not before it ran again: it is dead, or was frozen. 0:
 * it always ran since `since_ns`. */
uint64_t scheduler_silence_ns(pid_t process, uint64_t since_ns);

/** The exit status of a process that has ended, as waitpid() tells it. False: it has not. */
bool scheduler_has_ended(pid_t process, int *status);

#endif

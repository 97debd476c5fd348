/**
 * Key order: the queues of keys, and a thread that sends jobs on when their turn has come. So a
 * lane or the publisher, which lets the next job pass, does not have to plan and prepare it.
 *
 * Lifetime: key_order_start() to key_order_destroy(). Threads: any.
 */
#ifndef KEY_ORDER_KEY_ORDER_H
#define KEY_ORDER_KEY_ORDER_H

#include "key_order/key_queues.h"

enum { KEY_ORDER_GROUP_MAX = 64 };

struct key_order;

struct key_order_options {
    size_t width;    /* how many jobs of a key run at a time */
    size_t jobs_max; /* how many jobs can be in flight */
    /** The thread's first call. */
    void (*on_start)(void *context);
    /**
     * Jobs that have waited may run, KEY_ORDER_GROUP_MAX at most; the callee owns them. False: no
     * job runs any more, the callee owns none, and each is dropped.
     */
    bool (*on_passed)(void *context, struct job *const *jobs, size_t count);
    /** A job that has left its key queue is not run; the callee owns it. */
    void (*on_dropped)(void *context, struct job *job);
    void *context;
};

/** ERR_NO_MEMORY. */
MUST_CHECK enum err key_order_start(
    const struct key_order_options *options, struct key_order **ret, struct error *err);

/** Ends the thread: from now on jobs that pass are dropped. NULL is fine. */
void key_order_finish(struct key_order *order);

/** Call it when no job is in a key queue any more. NULL is fine. */
void key_order_destroy(struct key_order *order);

/** As key_queues_enter(); a job that waits goes to on_passed later. */
MUST_CHECK enum err key_order_enter(
    struct key_order *order, struct job *job, bool *passes, struct error *err);

/** The job that was in `queue` is over: the next one goes to on_passed. NULL is fine. */
void key_order_leave(struct key_order *order, struct key_queue *queue);

/** As key_order_leave(), but returns the next job, which the caller owns; NULL if there is none. */
MUST_CHECK struct job *key_order_take_next(struct key_order *order, struct key_queue *queue);

/** A job that key_order_take_next() returned goes to on_passed. */
void key_order_pass(struct key_order *order, struct job *job);

/** As key_queues_take_waiting(). */
MUST_CHECK struct job *key_order_take_waiting(
    struct key_order *order, const char *topic, int32_t partition);

/** How many jobs wait. */
size_t key_order_waiting_count(struct key_order *order);

#endif

/**
 * The queues of keys. Of the jobs of one key, at most `width` have passed and not left; the others
 * wait in the order in which they came. With a width of 1 they run one after the other. Jobs of
 * different keys do not wait for each other.
 *
 * A key queue holds the jobs of one topic, partition and key. Its first jobs pass at once; each
 * later one passes when a job before it has left. A job without a key passes at once, unless it
 * uses residents: then the missing key counts as a key.
 *
 * Lifetime: the queues own jobs that wait, until these pass or are taken out. A key queue lives
 * while a job of it has passed and not left. Memory: a key queue for each key with jobs in flight,
 * and a copy of the key. Threads: any.
 */
#ifndef KEY_ORDER_KEY_QUEUES_H
#define KEY_ORDER_KEY_QUEUES_H

#include "job/job.h"

struct key_queue;
struct key_queues;

MUST_CHECK enum err key_queues_create(size_t width, struct key_queues **ret, struct error *err);

/** Every job has left. NULL is fine. */
void key_queues_destroy(struct key_queues *queues);

/**
 * *passes true: the job may run, and the caller still owns it. False: the job waits, owned here,
 * until key_queues_leave() returns it. ERR_NO_MEMORY: nothing has changed.
 */
MUST_CHECK enum err key_queues_enter(
    struct key_queues *queues, struct job *job, bool *passes, struct error *err);

/**
 * A job of `queue` is finished, or dropped. Returns the next one, which has passed; NULL if there
 * is none. `queue` is the job's `key_queue`, read while the job was there; NULL is fine.
 */
MUST_CHECK struct job *key_queues_leave(struct key_queues *queues, struct key_queue *queue);

/**
 * Takes out the jobs that wait for keys of that partition, or with NULL for all: linked by
 * `next_in_key_queue`, in the order of each queue, and in no queue any more.
 */
MUST_CHECK struct job *key_queues_take_waiting(
    struct key_queues *queues, const char *topic, int32_t partition);

/** How many jobs wait. */
size_t key_queues_waiting_count(struct key_queues *queues);

#endif

/**
 * Arrays that have instances to be taken, in the order of their turns. Part of ready.h, whose lock
 * guards it.
 */
#ifndef BATCH_ARRAY_QUEUE_H
#define BATCH_ARRAY_QUEUE_H

#include "job/job.h"

struct array_queue {
    struct job *first, *last; /* linked by place.next */
};

void array_queue_add(struct array_queue *queue, struct job *array);

/** False: it was not there. */
bool array_queue_remove(struct array_queue *queue, struct job *array);

/** NULL where it is empty. */
struct job *array_queue_pop(struct array_queue *queue);

#endif

/**
 * Quick jobs that wait, in the order in which they came. Part of ready.h, whose lock guards it.
 */
#ifndef BATCH_QUICK_QUEUE_H
#define BATCH_QUICK_QUEUE_H

#include "batch/composition.h"

struct quick_queue {
    struct job *first, *last; /* linked by place.next */
};

void quick_queue_add(struct quick_queue *queue, struct job *job);

/** Adds jobs that are linked already, from `first` to `last`. */
void quick_queue_append(struct quick_queue *queue, struct job *first, struct job *last);

/** NULL where it is empty. */
struct job *quick_queue_pop(struct quick_queue *queue);

/** Takes a batch of `most` jobs at most, all of the first one's tenant. Returns how many. */
size_t quick_queue_take(struct quick_queue *queue, const struct composition_limits *limits,
    struct durations *durations, size_t most, struct job **ret);

#endif

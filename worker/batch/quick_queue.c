#include "batch/quick_queue.h"

void quick_queue_append(struct quick_queue *queue, struct job *first, struct job *last) {
    if (queue->first == NULL) queue->first = first;
    else queue->last->place.next = first;
    queue->last = last;
}

void quick_queue_add(struct quick_queue *queue, struct job *job) {
    job->place = (struct ready_place){.next = NULL};
    quick_queue_append(queue, job, job);
}

struct job *quick_queue_pop(struct quick_queue *queue) {
    struct job *job = queue->first;
    if (job != NULL) queue->first = job->place.next;
    return job;
}

size_t quick_queue_take(struct quick_queue *queue, const struct composition_limits *limits,
    struct durations *durations, size_t most, struct job **ret) {
    struct composition composition = {.count = 0};
    struct job *before = NULL, *job = queue->first;
    while (job != NULL && composition.count < most) {
        struct job *next = job->place.next;
        if (composition.count > 0 && !slice_equal(ret[0]->tenant, job->tenant)) {
            if (composition.passed_over++ == COMPOSITION_PASSED_MAX) break;
            before = job;
        } else {
            size_t index = composition.count;
            if (!composition_join(&composition, limits, durations, job)) break;
            ret[index] = job;
            if (before == NULL) queue->first = next;
            else before->place.next = next;
            if (queue->last == job) queue->last = before;
        }
        job = next;
    }
    return composition.count;
}

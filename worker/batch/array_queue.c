#include "batch/array_queue.h"

void array_queue_add(struct array_queue *queue, struct job *array) {
    array->place = (struct ready_place){.next = NULL};
    if (queue->first == NULL) queue->first = array;
    else queue->last->place.next = array;
    queue->last = array;
}

bool array_queue_remove(struct array_queue *queue, struct job *array) {
    struct job *before = NULL, *other = queue->first;
    for (; other != NULL && other != array; other = other->place.next) before = other;
    if (other == NULL) return false;
    if (before == NULL) queue->first = array->place.next;
    else before->place.next = array->place.next;
    if (queue->last == array) queue->last = before;
    return true;
}

struct job *array_queue_pop(struct array_queue *queue) {
    struct job *array = queue->first;
    if (array != NULL) (void)array_queue_remove(queue, array);
    return array;
}

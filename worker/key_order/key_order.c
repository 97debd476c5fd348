#include "key_order/key_order.h"

#include <stdlib.h>

#include "base/crew.h"
#include "base/queue.h"

struct key_order {
    struct key_order_options options;
    struct key_queues *queues;
    struct queue *passed; /* of struct job: they have waited */
    struct crew *crew;
};

static void drop(struct key_order *order, struct job *job) {
    struct key_queue *queue = job->key_queue;
    job->key_queue = NULL;
    order->options.on_dropped(order->options.context, job);
    key_order_leave(order, queue);
}

static void run(void *context, uint32_t index) {
    struct key_order *order = context;
    const struct key_order_options *options = &order->options;
    void *passed[KEY_ORDER_GROUP_MAX];
    size_t count;
    options->on_start(options->context);
    while ((count = queue_pop(order->passed, passed, KEY_ORDER_GROUP_MAX, -1)) > 0) {
        if (options->on_passed(options->context, (struct job *const *)passed, count)) continue;
        for (size_t i = 0; i < count; i++) drop(order, passed[i]);
    }
}

enum err key_order_start(
    const struct key_order_options *options, struct key_order **ret, struct error *err) {
    struct key_order *order = calloc(1, sizeof *order);
    if (order != NULL) order->passed = queue_create(options->jobs_max);
    if (order == NULL || order->passed == NULL) {
        free(order);
        return error_no_memory(
            err, "no memory for the queue of jobs that have waited for others of their key");
    }
    order->options = *options;
    const struct crew_options crew = {
        .name = "key-order", .count = 1, .run = run, .context = order};
    enum err code = key_queues_create(options->width, &order->queues, err);
    if (code == ERR_OK) code = crew_start(&crew, &order->crew, err);
    if (code == ERR_OK) *ret = order;
    else key_order_destroy(order);
    return code;
}

void key_order_finish(struct key_order *order) {
    if (order == NULL) return;
    queue_close(order->passed);
    crew_join(&order->crew);
}

void key_order_destroy(struct key_order *order) {
    if (order == NULL) return;
    key_queues_destroy(order->queues);
    queue_destroy(order->passed);
    free(order);
}

enum err key_order_enter(
    struct key_order *order, struct job *job, bool *passes, struct error *err) {
    return key_queues_enter(order->queues, job, passes, err);
}

struct job *key_order_take_next(struct key_order *order, struct key_queue *queue) {
    return key_queues_leave(order->queues, queue);
}

struct job *key_order_take_waiting(struct key_order *order, const char *topic, int32_t partition) {
    return key_queues_take_waiting(order->queues, topic, partition);
}

size_t key_order_waiting_count(struct key_order *order) {
    return key_queues_waiting_count(order->queues);
}

void key_order_pass(struct key_order *order, struct job *job) {
    struct key_queue *queue = job->key_queue;
    /* once the queue of passed jobs is closed, all jobs that wait for the key are dropped */
    while (job != NULL && !queue_push(order->passed, job)) {
        job->key_queue = NULL;
        order->options.on_dropped(order->options.context, job);
        job = key_order_take_next(order, queue);
    }
}

void key_order_leave(struct key_order *order, struct key_queue *queue) {
    struct job *next = key_order_take_next(order, queue);
    if (next != NULL) key_order_pass(order, next);
}

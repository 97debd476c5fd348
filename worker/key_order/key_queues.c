#include "key_order/key_queues.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/aligned.h"
#include "base/hash.h"
#include "base/hash_table.h"
#include "base/invariant.h"

enum { CACHE_LINE = 64, SHARDS = 64 };

struct key_queue {
    struct hash_node node;
    size_t passed_count;      /* passed and not left */
    struct job *first, *last; /* that wait */
    const char *topic;        /* lives as long as the source */
    int32_t partition;
    size_t key_size;
    uint8_t key[];
};

/* A part of the keys: threads seldom meet in one. */
struct shard {
    alignas(CACHE_LINE) pthread_mutex_t lock; /* guards its queues and everything in them */
    struct hash_table by_key;
};

struct key_queues {
    struct shard shards[SHARDS];
    size_t width;
    atomic_size_t waiting_count;
};

enum err key_queues_create(size_t width, struct key_queues **ret, struct error *err) {
    struct key_queues *queues = aligned_calloc(alignof(struct key_queues), sizeof *queues);
    if (queues == NULL) return error_no_memory(err, "no memory for the queues of keys");
    queues->width = width;
    for (size_t i = 0; i < SHARDS; i++) pthread_mutex_init(&queues->shards[i].lock, NULL);
    *ret = queues;
    return ERR_OK;
}

void key_queues_destroy(struct key_queues *queues) {
    if (queues == NULL) return;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &queues->shards[i];
        INVARIANT(shard->by_key.count == 0, "no key has a queue when the queues end");
        hash_table_fini(&shard->by_key);
        pthread_mutex_destroy(&shard->lock);
    }
    free(queues);
}

static bool uses_residents(const struct job *job) {
    for (size_t i = 0; i < job->buffer_count; i++)
        if (job->buffers[i].source == BUFFER_RESIDENT) return true;
    return false;
}

static uint64_t hash_of(const struct delivery *delivery) {
    const struct position *position = &delivery->position;
    uint64_t hash = hash_more(HASH_START, slice_of_text(position->topic));
    hash = hash_more(hash, slice_of(&position->partition, sizeof position->partition));
    return hash_more(hash, delivery->key);
}

/* By other bits than the table's. */
static struct shard *shard_of(struct key_queues *queues, uint64_t hash) {
    return &queues->shards[(hash >> 32) % SHARDS];
}

/* relaxed: a count that orders nothing; the lock of a shard does */
static void count_waiting(struct key_queues *queues, int change) {
    atomic_fetch_add_explicit(&queues->waiting_count, (size_t)change, memory_order_relaxed);
}

static struct key_queue *queue_of(struct hash_node *node) {
    return node == NULL ? NULL : HASH_ITEM(node, struct key_queue, node);
}

static bool is_queue_of(const struct key_queue *queue, const struct delivery *delivery) {
    return queue->partition == delivery->position.partition &&
           slice_equal(slice_of(queue->key, queue->key_size), delivery->key) &&
           strcmp(queue->topic, delivery->position.topic) == 0;
}

static struct key_queue *find(
    const struct shard *shard, uint64_t hash, const struct delivery *delivery) {
    struct hash_node *node = hash_table_find(&shard->by_key, hash);
    while (node != NULL && !is_queue_of(queue_of(node), delivery)) node = hash_node_next(node);
    return queue_of(node);
}

static struct key_queue *add(struct shard *shard, uint64_t hash, const struct delivery *delivery) {
    struct key_queue *queue = calloc(1, sizeof *queue + delivery->key.size);
    if (queue == NULL) return NULL;
    queue->topic = delivery->position.topic;
    queue->partition = delivery->position.partition;
    queue->key_size = delivery->key.size;
    if (queue->key_size > 0) memcpy(queue->key, delivery->key.data, queue->key_size);
    hash_table_add(&shard->by_key, &queue->node, hash);
    return queue;
}

static void end(struct shard *shard, struct key_queue *queue) {
    hash_table_remove(&shard->by_key, &queue->node);
    free(queue);
}

static void append(struct key_queues *queues, struct key_queue *queue, struct job *job) {
    job->next_in_key_queue = NULL;
    if (queue->last != NULL) queue->last->next_in_key_queue = job;
    else queue->first = job;
    queue->last = job;
    count_waiting(queues, 1);
    job_move(job, JOB_WAITING_FOR_KEY);
}

enum err key_queues_enter(
    struct key_queues *queues, struct job *job, bool *passes, struct error *err) {
    const struct delivery *delivery = job->delivery;
    *passes = true;
    if (!delivery->has_key && !uses_residents(job)) return ERR_OK;
    uint64_t hash = hash_of(delivery);
    struct shard *shard = shard_of(queues, hash);
    pthread_mutex_lock(&shard->lock);
    struct key_queue *queue = find(shard, hash, delivery);
    if (queue == NULL) queue = add(shard, hash, delivery);
    *passes = queue == NULL || queue->passed_count < queues->width;
    if (queue != NULL && *passes) queue->passed_count++;
    else if (queue != NULL) append(queues, queue, job);
    /* set before the lock is released: after that the job may pass, and end, on another thread */
    job->key_queue = queue;
    pthread_mutex_unlock(&shard->lock);
    if (queue != NULL) return ERR_OK;
    return error_no_memory(
        err, "no memory for the queue of a key of %zu bytes", delivery->key.size);
}

struct job *key_queues_leave(struct key_queues *queues, struct key_queue *queue) {
    if (queue == NULL) return NULL; /* the job passed without one */
    struct shard *shard = shard_of(queues, queue->node.hash);
    pthread_mutex_lock(&shard->lock);
    struct job *next = queue->first;
    if (next != NULL) {
        queue->first = next->next_in_key_queue;
        if (queue->first == NULL) queue->last = NULL;
        count_waiting(queues, -1);
        job_move(next, JOB_DECODED);
    } else if (--queue->passed_count == 0) {
        end(shard, queue);
    }
    pthread_mutex_unlock(&shard->lock);
    return next;
}

static bool is_in(const struct key_queue *queue, const char *topic, int32_t partition) {
    return topic == NULL || (queue->partition == partition && strcmp(queue->topic, topic) == 0);
}

/* Links what waits in the queues of a shard behind *end_of_taken; returns where the next goes. */
static struct job **take_from_shard(struct key_queues *queues, struct shard *shard,
    const char *topic, int32_t partition, struct job **end_of_taken) {
    struct hash_node *node = NULL;
    pthread_mutex_lock(&shard->lock);
    while ((node = hash_table_walk(&shard->by_key, node)) != NULL) {
        struct key_queue *queue = queue_of(node);
        if (queue->first == NULL || !is_in(queue, topic, partition)) continue;
        *end_of_taken = queue->first;
        for (struct job *job = queue->first; job != NULL; job = job->next_in_key_queue) {
            job->key_queue = NULL;
            count_waiting(queues, -1);
            end_of_taken = &job->next_in_key_queue;
        }
        queue->first = queue->last = NULL;
    }
    pthread_mutex_unlock(&shard->lock);
    return end_of_taken;
}

struct job *key_queues_take_waiting(
    struct key_queues *queues, const char *topic, int32_t partition) {
    struct job *taken = NULL, **end_of_taken = &taken;
    for (size_t i = 0; i < SHARDS && key_queues_waiting_count(queues) > 0; i++)
        end_of_taken = take_from_shard(queues, &queues->shards[i], topic, partition, end_of_taken);
    return taken;
}

size_t key_queues_waiting_count(struct key_queues *queues) {
    return atomic_load_explicit(&queues->waiting_count, memory_order_relaxed); /* as above */
}

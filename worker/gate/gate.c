#include "gate/gate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/invariant.h"

enum { TABLE_BUCKETS = 4096 };

struct gate_line {
    uint64_t hash;
    struct gate_line *next_in_bucket;
    size_t passed_count;      /* and not left */
    struct job *first, *last; /* that wait */
    const char *topic;        /* lives as long as the source */
    int32_t partition;
    size_t key_size;
    uint8_t key[];
};

struct gate {
    size_t width;
    pthread_mutex_t lock; /* guards everything below */
    size_t line_count, waiting_count;
    struct gate_line *buckets[TABLE_BUCKETS];
};

enum err gate_create(size_t width, struct gate **ret, struct error *err) {
    struct gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the key gate");
    gate->width = width;
    pthread_mutex_init(&gate->lock, NULL);
    *ret = gate;
    return ERR_OK;
}

void gate_destroy(struct gate *gate) {
    if (gate == NULL) return;
    INVARIANT(gate->line_count == 0, "no line stands when the gate ends");
    pthread_mutex_destroy(&gate->lock);
    free(gate);
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

static bool is_line_of(const struct gate_line *line, const struct delivery *delivery) {
    return line->partition == delivery->position.partition &&
           slice_equal(slice_of(line->key, line->key_size), delivery->key) &&
           strcmp(line->topic, delivery->position.topic) == 0;
}

static struct gate_line *find(struct gate *gate, uint64_t hash, const struct delivery *delivery) {
    struct gate_line *line = gate->buckets[hash % TABLE_BUCKETS];
    while (line != NULL && (line->hash != hash || !is_line_of(line, delivery)))
        line = line->next_in_bucket;
    return line;
}

static struct gate_line *add(struct gate *gate, uint64_t hash, const struct delivery *delivery) {
    struct gate_line *line = calloc(1, sizeof *line + delivery->key.size);
    if (line == NULL) return NULL;
    struct gate_line **bucket = &gate->buckets[hash % TABLE_BUCKETS];
    line->hash = hash;
    line->topic = delivery->position.topic;
    line->partition = delivery->position.partition;
    line->key_size = delivery->key.size;
    if (line->key_size > 0) memcpy(line->key, delivery->key.data, line->key_size);
    line->next_in_bucket = *bucket;
    *bucket = line;
    gate->line_count++;
    return line;
}

static void end(struct gate *gate, struct gate_line *line) {
    struct gate_line **link = &gate->buckets[line->hash % TABLE_BUCKETS];
    while (*link != line) link = &(*link)->next_in_bucket;
    *link = line->next_in_bucket;
    gate->line_count--;
    free(line);
}

static void append(struct gate *gate, struct gate_line *line, struct job *job) {
    job->next_in_line = NULL;
    if (line->last != NULL) line->last->next_in_line = job;
    else line->first = job;
    line->last = job;
    gate->waiting_count++;
}

enum err gate_enter(struct gate *gate, struct job *job, bool *passes, struct error *err) {
    const struct delivery *delivery = job->delivery;
    *passes = true;
    if (!delivery->has_key && !uses_residents(job)) return ERR_OK;
    uint64_t hash = hash_of(delivery);
    pthread_mutex_lock(&gate->lock);
    struct gate_line *line = find(gate, hash, delivery);
    if (line == NULL) line = add(gate, hash, delivery);
    *passes = line == NULL || line->passed_count < gate->width;
    if (line != NULL && *passes) line->passed_count++;
    else if (line != NULL) append(gate, line, job);
    /* Before the lock is let go: from then on the job may pass, and end, on another thread. */
    job->line = line;
    pthread_mutex_unlock(&gate->lock);
    if (line != NULL) return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
        "no memory for the line of a key of %zu bytes", delivery->key.size);
}

struct job *gate_leave(struct gate *gate, struct gate_line *line) {
    if (line == NULL) return NULL; /* the job passed without one */
    pthread_mutex_lock(&gate->lock);
    struct job *next = line->first;
    if (next != NULL) {
        line->first = next->next_in_line;
        if (line->first == NULL) line->last = NULL;
        gate->waiting_count--;
    } else if (--line->passed_count == 0) {
        end(gate, line);
    }
    pthread_mutex_unlock(&gate->lock);
    return next;
}

static bool is_in(const struct gate_line *line, const char *topic, int32_t partition) {
    return topic == NULL || (line->partition == partition && strcmp(line->topic, topic) == 0);
}

struct job *gate_take_waiting(struct gate *gate, const char *topic, int32_t partition) {
    struct job *taken = NULL, **end_of_taken = &taken;
    pthread_mutex_lock(&gate->lock);
    for (size_t i = 0; i < TABLE_BUCKETS && gate->waiting_count > 0; i++) {
        struct gate_line *line = gate->buckets[i];
        for (; line != NULL; line = line->next_in_bucket) {
            if (line->first == NULL || !is_in(line, topic, partition)) continue;
            *end_of_taken = line->first;
            for (struct job *job = line->first; job != NULL; job = job->next_in_line) {
                job->line = NULL;
                gate->waiting_count--;
                end_of_taken = &job->next_in_line;
            }
            line->first = line->last = NULL;
        }
    }
    pthread_mutex_unlock(&gate->lock);
    return taken;
}

size_t gate_waiting_count(struct gate *gate) {
    pthread_mutex_lock(&gate->lock);
    size_t count = gate->waiting_count;
    pthread_mutex_unlock(&gate->lock);
    return count;
}

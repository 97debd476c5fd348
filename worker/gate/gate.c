#include "gate/gate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/hash_table.h"
#include "base/invariant.h"

struct gate_line {
    struct hash_node node;
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
    size_t waiting_count;
    struct hash_table lines;
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
    INVARIANT(gate->lines.count == 0, "no line stands when the gate ends");
    hash_table_fini(&gate->lines);
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

static struct gate_line *line_of(struct hash_node *node) {
    return node == NULL ? NULL : HASH_ITEM(node, struct gate_line, node);
}

static bool is_line_of(const struct gate_line *line, const struct delivery *delivery) {
    return line->partition == delivery->position.partition &&
           slice_equal(slice_of(line->key, line->key_size), delivery->key) &&
           strcmp(line->topic, delivery->position.topic) == 0;
}

static struct gate_line *find(struct gate *gate, uint64_t hash, const struct delivery *delivery) {
    struct hash_node *node = hash_table_find(&gate->lines, hash);
    while (node != NULL && !is_line_of(line_of(node), delivery)) node = hash_node_next(node);
    return line_of(node);
}

static struct gate_line *add(struct gate *gate, uint64_t hash, const struct delivery *delivery) {
    struct gate_line *line = calloc(1, sizeof *line + delivery->key.size);
    if (line == NULL) return NULL;
    line->topic = delivery->position.topic;
    line->partition = delivery->position.partition;
    line->key_size = delivery->key.size;
    if (line->key_size > 0) memcpy(line->key, delivery->key.data, line->key_size);
    hash_table_add(&gate->lines, &line->node, hash);
    return line;
}

static void end(struct gate *gate, struct gate_line *line) {
    hash_table_remove(&gate->lines, &line->node);
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
    struct hash_node *node = NULL;
    while (gate->waiting_count > 0 && (node = hash_table_walk(&gate->lines, node)) != NULL) {
        struct gate_line *line = line_of(node);
        if (line->first == NULL || !is_in(line, topic, partition)) continue;
        *end_of_taken = line->first;
        for (struct job *job = line->first; job != NULL; job = job->next_in_line) {
            job->line = NULL;
            gate->waiting_count--;
            end_of_taken = &job->next_in_line;
        }
        line->first = line->last = NULL;
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

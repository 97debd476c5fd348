#include "prepare/carriers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash_table.h"

/* A digest that is carried. */
struct coming {
    struct hash_node node;
    struct digest digest;
    struct carried *first, *last; /* by number */
    struct job *waiting;          /* only while somebody carries it */
};

/* One buffer of a job; in the job's arena. */
struct carried {
    struct coming *coming; /* NULL: it is not carried, or not any more */
    uint64_t number;       /* the job's */
    struct carried *before, *after;
};

struct carriers {
    uint64_t taken_count; /* the intake thread's */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t decoded;
    uint64_t decoded_below; /* all with smaller numbers are decoded */
    bool is_decoded[CARRIERS_UNDECODED_MAX];
    struct job *stranded;
    struct hash_table coming;
};

struct carriers *carriers_create(void) {
    struct carriers *carriers = calloc(1, sizeof *carriers);
    if (carriers == NULL) return NULL;
    pthread_mutex_init(&carriers->lock, NULL);
    pthread_cond_init(&carriers->decoded, NULL);
    return carriers;
}

void carriers_destroy(struct carriers *carriers) {
    if (carriers == NULL) return;
    hash_table_fini(&carriers->coming);
    pthread_cond_destroy(&carriers->decoded);
    pthread_mutex_destroy(&carriers->lock);
    free(carriers);
}

/* --- the order of messages --- */

void carriers_number(struct carriers *carriers, struct delivery *delivery) {
    delivery->number = carriers->taken_count++;
}

void carriers_decoded(struct carriers *carriers, const uint64_t *numbers, size_t count) {
    pthread_mutex_lock(&carriers->lock);
    for (size_t i = 0; i < count; i++)
        carriers->is_decoded[numbers[i] % CARRIERS_UNDECODED_MAX] = true;
    bool *next;
    while (*(next = &carriers->is_decoded[carriers->decoded_below % CARRIERS_UNDECODED_MAX])) {
        *next = false;
        carriers->decoded_below++;
    }
    pthread_cond_broadcast(&carriers->decoded);
    pthread_mutex_unlock(&carriers->lock);
}

/* --- the table --- */

static struct coming *find(const struct carriers *carriers, const struct digest *digest) {
    struct hash_node *node = hash_table_find(&carriers->coming, digest_hash(digest));
    for (; node != NULL; node = hash_node_next(node)) {
        struct coming *coming = HASH_ITEM(node, struct coming, node);
        if (digest_equal(&coming->digest, digest)) return coming;
    }
    return NULL;
}

/* NULL when memory is short. */
static struct coming *find_or_add(struct carriers *carriers, const struct digest *digest) {
    struct coming *coming = find(carriers, digest);
    if (coming != NULL || (coming = calloc(1, sizeof *coming)) == NULL) return coming;
    coming->digest = *digest;
    hash_table_add(&carriers->coming, &coming->node, digest_hash(digest));
    return coming;
}

/* From the end: jobs are decoded in the order of their numbers, or nearly so. */
static void insert(struct coming *coming, struct carried *carried) {
    struct carried *before = coming->last;
    while (before != NULL && before->number > carried->number) before = before->before;
    carried->coming = coming;
    carried->before = before;
    carried->after = before != NULL ? before->after : coming->first;
    *(before != NULL ? &before->after : &coming->first) = carried;
    *(carried->after != NULL ? &carried->after->before : &coming->last) = carried;
}

static void remove_carried(struct coming *coming, struct carried *carried) {
    *(carried->before != NULL ? &carried->before->after : &coming->first) = carried->after;
    *(carried->after != NULL ? &carried->after->before : &coming->last) = carried->before;
    carried->coming = NULL;
}

static void forget_if_unused(struct carriers *carriers, struct coming *coming) {
    if (coming->first != NULL) return;
    hash_table_remove(&carriers->coming, &coming->node);
    free(coming);
}

static bool is_carried(const struct job_buffer *buffer) {
    return buffer->source == BUFFER_STATIC && buffer->has_data && buffer->bytes > 0;
}

void carriers_add(struct carriers *carriers, struct job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->buffer_count; i++) count += is_carried(&job->buffers[i]);
    if (count == 0) return;
    job->carried = arena_alloc(&job->arena, job->buffer_count, sizeof *job->carried);
    if (job->carried == NULL) return;
    pthread_mutex_lock(&carriers->lock);
    for (size_t i = 0; i < job->buffer_count; i++) {
        struct coming *coming =
            is_carried(&job->buffers[i]) ? find_or_add(carriers, &job->buffers[i].digest) : NULL;
        if (coming == NULL) continue;
        job->carried[i].number = job->delivery->number;
        insert(coming, &job->carried[i]);
    }
    pthread_mutex_unlock(&carriers->lock);
}

/* --- waiting --- */

static struct coming *find_ahead(
    struct carriers *carriers, const struct job *job, const struct digest *digest) {
    while (carriers->decoded_below < job->delivery->number)
        pthread_cond_wait(&carriers->decoded, &carriers->lock);
    struct coming *coming = find(carriers, digest);
    return coming != NULL && coming->first->number < job->delivery->number ? coming : NULL;
}

bool carriers_are_ahead(
    struct carriers *carriers, const struct job *job, const struct digest *digest) {
    pthread_mutex_lock(&carriers->lock);
    bool are_ahead = find_ahead(carriers, job, digest) != NULL;
    pthread_mutex_unlock(&carriers->lock);
    return are_ahead;
}

bool carriers_wait(struct carriers *carriers, struct job *job, size_t index) {
    pthread_mutex_lock(&carriers->lock);
    struct coming *coming = find_ahead(carriers, job, &job->buffers[index].digest);
    if (coming != NULL) {
        job->awaited = index;
        job->next_waiting = coming->waiting;
        coming->waiting = job;
    }
    pthread_mutex_unlock(&carriers->lock);
    return coming != NULL;
}

static struct coming *coming_of(const struct job *job, size_t index) {
    return job->carried != NULL ? job->carried[index].coming : NULL;
}

struct job *carriers_arrived(
    struct carriers *carriers, struct statics *statics, struct job *job, size_t index) {
    struct coming *coming = coming_of(job, index);
    if (coming == NULL) return NULL;
    pthread_mutex_lock(&carriers->lock);
    struct job *woken = coming->waiting;
    for (struct job *each = woken; each != NULL; each = each->next_waiting)
        each->statics[each->awaited] = statics_ref(statics, job->statics[index]);
    coming->waiting = NULL;
    remove_carried(coming, &job->carried[index]);
    forget_if_unused(carriers, coming);
    pthread_mutex_unlock(&carriers->lock);
    return woken;
}

/* Moves those that nobody ahead carries for any more. */
static void take_forsaken(struct coming *coming, struct job **woken) {
    uint64_t first = coming->first != NULL ? coming->first->number : UINT64_MAX;
    struct job **link = &coming->waiting, *each;
    while ((each = *link) != NULL) {
        if (first < each->delivery->number) {
            link = &each->next_waiting;
            continue;
        }
        *link = each->next_waiting;
        each->next_waiting = *woken;
        *woken = each;
    }
}

static bool is_of_partition(const struct job *job, const struct position *position) {
    const struct position *own = &job->delivery->position;
    return own->partition == position->partition && strcmp(own->topic, position->topic) == 0;
}

struct job *carriers_end(struct carriers *carriers, struct job *job, bool is_left) {
    struct job *woken = NULL;
    if (job->carried == NULL) return NULL;
    pthread_mutex_lock(&carriers->lock);
    for (size_t i = 0; i < job->buffer_count; i++) {
        struct coming *coming = coming_of(job, i);
        if (coming == NULL) continue;
        bool was_first = coming->first == &job->carried[i];
        remove_carried(coming, &job->carried[i]);
        if (was_first) take_forsaken(coming, &woken);
        forget_if_unused(carriers, coming);
    }
    pthread_mutex_unlock(&carriers->lock);
    for (struct job *each = woken; each != NULL; each = each->next_waiting)
        if (is_left && is_of_partition(each, &job->delivery->position)) each->is_left = true;
    return woken;
}

struct job *carriers_take_waiting(struct carriers *carriers) {
    struct job *woken = NULL;
    pthread_mutex_lock(&carriers->lock);
    struct hash_node *node = NULL;
    while ((node = hash_table_walk(&carriers->coming, node)) != NULL) {
        struct coming *coming = HASH_ITEM(node, struct coming, node);
        while (coming->waiting != NULL) {
            struct job *each = coming->waiting;
            coming->waiting = each->next_waiting;
            each->next_waiting = woken;
            woken = each;
        }
    }
    pthread_mutex_unlock(&carriers->lock);
    return woken;
}

void carriers_strand(struct carriers *carriers, struct job *job) {
    pthread_mutex_lock(&carriers->lock);
    job->next_waiting = carriers->stranded;
    carriers->stranded = job;
    pthread_mutex_unlock(&carriers->lock);
}

struct job *carriers_take_stranded(struct carriers *carriers) {
    pthread_mutex_lock(&carriers->lock);
    struct job *stranded = carriers->stranded;
    carriers->stranded = NULL;
    pthread_mutex_unlock(&carriers->lock);
    return stranded;
}

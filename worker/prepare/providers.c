#include "prepare/providers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash_table.h"

/* A static that at least one job provides. */
struct coming {
    struct hash_node node;
    struct digest digest;
    struct provided *first, *last; /* by number */
    struct job *waiting;           /* only while a job provides it */
};

/* One buffer of a job; in the job's arena. */
struct provided {
    struct coming *coming; /* NULL: it is not provided, or not any more */
    uint64_t number;       /* the job's */
    struct provided *before, *after;
};

struct providers {
    uint64_t taken_count; /* the intake thread's */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t decoded;
    uint64_t decoded_below; /* all with smaller numbers are decoded */
    bool is_decoded[PROVIDERS_UNDECODED_MAX];
    struct job *stranded;
    struct hash_table coming;
};

struct providers *providers_create(void) {
    struct providers *providers = calloc(1, sizeof *providers);
    if (providers == NULL) return NULL;
    pthread_mutex_init(&providers->lock, NULL);
    pthread_cond_init(&providers->decoded, NULL);
    return providers;
}

void providers_destroy(struct providers *providers) {
    if (providers == NULL) return;
    hash_table_fini(&providers->coming);
    pthread_cond_destroy(&providers->decoded);
    pthread_mutex_destroy(&providers->lock);
    free(providers);
}

/* --- the order of messages --- */

void providers_number(struct providers *providers, struct delivery *delivery) {
    delivery->number = providers->taken_count++;
}

void providers_decoded(struct providers *providers, const uint64_t *numbers, size_t count) {
    pthread_mutex_lock(&providers->lock);
    for (size_t i = 0; i < count; i++)
        providers->is_decoded[numbers[i] % PROVIDERS_UNDECODED_MAX] = true;
    bool *next;
    while (*(next = &providers->is_decoded[providers->decoded_below % PROVIDERS_UNDECODED_MAX])) {
        *next = false;
        providers->decoded_below++;
    }
    pthread_cond_broadcast(&providers->decoded);
    pthread_mutex_unlock(&providers->lock);
}

/* --- the table --- */

static struct coming *find(const struct providers *providers, const struct digest *digest) {
    struct hash_node *node = hash_table_find(&providers->coming, digest_hash(digest));
    for (; node != NULL; node = hash_node_next(node)) {
        struct coming *coming = HASH_ITEM(node, struct coming, node);
        if (digest_equal(&coming->digest, digest)) return coming;
    }
    return NULL;
}

/* NULL when memory is short. */
static struct coming *find_or_add(struct providers *providers, const struct digest *digest) {
    struct coming *coming = find(providers, digest);
    if (coming != NULL || (coming = calloc(1, sizeof *coming)) == NULL) return coming;
    coming->digest = *digest;
    hash_table_add(&providers->coming, &coming->node, digest_hash(digest));
    return coming;
}

/* From the end: jobs are decoded in the order of their numbers, or nearly so. */
static void insert(struct coming *coming, struct provided *provided) {
    struct provided *before = coming->last;
    while (before != NULL && before->number > provided->number) before = before->before;
    provided->coming = coming;
    provided->before = before;
    provided->after = before != NULL ? before->after : coming->first;
    *(before != NULL ? &before->after : &coming->first) = provided;
    *(provided->after != NULL ? &provided->after->before : &coming->last) = provided;
}

static void remove_provided(struct coming *coming, struct provided *provided) {
    *(provided->before != NULL ? &provided->before->after : &coming->first) = provided->after;
    *(provided->after != NULL ? &provided->after->before : &coming->last) = provided->before;
    provided->coming = NULL;
}

static void forget_if_unused(struct providers *providers, struct coming *coming) {
    if (coming->first != NULL) return;
    hash_table_remove(&providers->coming, &coming->node);
    free(coming);
}

static bool is_provided(const struct job_buffer *buffer) {
    return buffer->source == BUFFER_STATIC && buffer->has_data && buffer->bytes > 0;
}

void providers_add(struct providers *providers, struct job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->buffer_count; i++) count += is_provided(&job->buffers[i]);
    if (count == 0) return;
    job->provided = arena_alloc(&job->arena, job->buffer_count, sizeof *job->provided);
    if (job->provided == NULL) return;
    pthread_mutex_lock(&providers->lock);
    for (size_t i = 0; i < job->buffer_count; i++) {
        struct coming *coming =
            is_provided(&job->buffers[i]) ? find_or_add(providers, &job->buffers[i].digest) : NULL;
        if (coming == NULL) continue;
        job->provided[i].number = job->delivery->number;
        insert(coming, &job->provided[i]);
    }
    pthread_mutex_unlock(&providers->lock);
}

/* --- waiting --- */

static struct coming *find_ahead(
    struct providers *providers, const struct job *job, const struct digest *digest) {
    while (providers->decoded_below < job->delivery->number)
        pthread_cond_wait(&providers->decoded, &providers->lock);
    struct coming *coming = find(providers, digest);
    return coming != NULL && coming->first->number < job->delivery->number ? coming : NULL;
}

bool providers_are_ahead(
    struct providers *providers, const struct job *job, const struct digest *digest) {
    pthread_mutex_lock(&providers->lock);
    bool are_ahead = find_ahead(providers, job, digest) != NULL;
    pthread_mutex_unlock(&providers->lock);
    return are_ahead;
}

bool providers_wait(struct providers *providers, struct job *job, size_t index) {
    pthread_mutex_lock(&providers->lock);
    struct coming *coming = find_ahead(providers, job, &job->buffers[index].digest);
    if (coming != NULL) {
        job->awaited = index;
        job->next_waiting = coming->waiting;
        coming->waiting = job;
    }
    pthread_mutex_unlock(&providers->lock);
    return coming != NULL;
}

static struct coming *coming_of(const struct job *job, size_t index) {
    return job->provided != NULL ? job->provided[index].coming : NULL;
}

struct job *providers_arrived(
    struct providers *providers, struct statics *statics, struct job *job, size_t index) {
    struct coming *coming = coming_of(job, index);
    if (coming == NULL) return NULL;
    pthread_mutex_lock(&providers->lock);
    struct job *woken = coming->waiting;
    for (struct job *each = woken; each != NULL; each = each->next_waiting)
        each->statics[each->awaited] = statics_ref(statics, job->statics[index]);
    coming->waiting = NULL;
    remove_provided(coming, &job->provided[index]);
    forget_if_unused(providers, coming);
    pthread_mutex_unlock(&providers->lock);
    return woken;
}

/* Moves those that no job ahead provides for any more. */
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

struct job *providers_end(struct providers *providers, struct job *job, bool is_left) {
    struct job *woken = NULL;
    if (job->provided == NULL) return NULL;
    pthread_mutex_lock(&providers->lock);
    for (size_t i = 0; i < job->buffer_count; i++) {
        struct coming *coming = coming_of(job, i);
        if (coming == NULL) continue;
        bool was_first = coming->first == &job->provided[i];
        remove_provided(coming, &job->provided[i]);
        if (was_first) take_forsaken(coming, &woken);
        forget_if_unused(providers, coming);
    }
    pthread_mutex_unlock(&providers->lock);
    for (struct job *each = woken; each != NULL; each = each->next_waiting)
        if (is_left && is_of_partition(each, &job->delivery->position)) each->is_left = true;
    return woken;
}

struct job *providers_take_waiting(struct providers *providers) {
    struct job *woken = NULL;
    pthread_mutex_lock(&providers->lock);
    struct hash_node *node = NULL;
    while ((node = hash_table_walk(&providers->coming, node)) != NULL) {
        struct coming *coming = HASH_ITEM(node, struct coming, node);
        while (coming->waiting != NULL) {
            struct job *each = coming->waiting;
            coming->waiting = each->next_waiting;
            each->next_waiting = woken;
            woken = each;
        }
    }
    pthread_mutex_unlock(&providers->lock);
    return woken;
}

void providers_strand(struct providers *providers, struct job *job) {
    pthread_mutex_lock(&providers->lock);
    job->next_waiting = providers->stranded;
    providers->stranded = job;
    pthread_mutex_unlock(&providers->lock);
}

struct job *providers_take_stranded(struct providers *providers) {
    pthread_mutex_lock(&providers->lock);
    struct job *stranded = providers->stranded;
    providers->stranded = NULL;
    pthread_mutex_unlock(&providers->lock);
    return stranded;
}

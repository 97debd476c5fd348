#include "job/job.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>

#include "base/invariant.h"

static const struct {
    const char *name;
    uint32_t next; /* states, as bits */
} states[] = {
#define IN(symbol) (1u << JOB_##symbol)
#define X(symbol, name, next) [JOB_##symbol] = {name, next},
    JOB_STATE_LIST(X)
#undef X
#undef IN
};

/*
 * Blocks of jobs that are over, for the next jobs. One thread creates a job and another ends it;
 * without this, the allocator would move each block between their caches, which costs more than
 * the work on a small job.
 */
enum { SPARES_MAX = 512 };

/* A larger message has a block of its own, so that a job's has room for what is decoded, and for a
 * result. */
enum { MESSAGE_MAX = 9216 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS_SPARES = false }; /* the sanitizer is to see each job's end */
#else
enum { KEEPS_SPARES = true };
#endif

struct job_block {
    struct job job; /* first, so that a job finds its block */
    struct job_block *next;
    alignas(max_align_t) uint8_t memory[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job_block *spares;
static size_t spare_count;

static struct job_block *take_spare(void) {
    pthread_mutex_lock(&lock);
    struct job_block *spare = spares;
    if (spare != NULL) {
        spares = spare->next;
        spare_count--;
    }
    pthread_mutex_unlock(&lock);
    return spare;
}

/* Frees those that there is no place for. */
static void give_spares(struct job_block *first) {
    pthread_mutex_lock(&lock);
    while (first != NULL && KEEPS_SPARES && spare_count < SPARES_MAX) {
        struct job_block *next = first->next;
        first->next = spares;
        spares = first;
        spare_count++;
        first = next;
    }
    pthread_mutex_unlock(&lock);
    while (first != NULL) {
        struct job_block *next = first->next;
        free(first);
        first = next;
    }
}

struct job *job_create(struct delivery *delivery) {
    struct job_block *block = take_spare();
    if (block == NULL) block = malloc(JOB_BYTES);
    if (block == NULL) return NULL;
    size_t bytes = delivery_bytes(delivery), room = JOB_BYTES - sizeof *block;
    if (bytes <= MESSAGE_MAX) {
        room = (room - bytes) & ~(alignof(max_align_t) - 1);
        delivery_keep_within(delivery, block->memory + room);
    } else if (!delivery_keep(delivery)) {
        free(block);
        return NULL;
    }
    block->job = (struct job){.delivery = delivery, .memory = block->memory, .memory_size = room};
    return &block->job;
}

void job_init_arena(struct job *job, size_t reserved_max) {
    arena_init_within(&job->arena, reserved_max, job->memory, job->memory_size);
}

void jobs_destroy(struct job *const *jobs, size_t count) {
    struct job_block *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct shared *edition = jobs[i]->edition;
        job_move(jobs[i], JOB_OVER);
        arena_fini(&jobs[i]->arena);
        delivery_destroy(jobs[i]->delivery);
        struct job_block *block = (struct job_block *)jobs[i];
        block->next = first;
        first = block;
        shared_release(edition);
    }
    give_spares(first);
}

void job_destroy(struct job *job) {
    if (job != NULL) jobs_destroy(&job, 1);
}

void job_move(struct job *job, enum job_state to) {
    INVARIANT((states[job->state].next >> to & 1) != 0, "a job moves as the table of states says");
    job->state = to;
}

const char *job_state_name(enum job_state state) {
    return states[state].name;
}

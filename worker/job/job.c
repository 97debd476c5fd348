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
enum { SPARES_MAX = 2048 };

/* A larger delivery has a block of its own, so that a job's has room for what is decoded, and for a
 * result. */
enum { MESSAGE_MAX = 9216 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS_SPARES = false }; /* the sanitizer is to see each job's end */
#else
enum { KEEPS_SPARES = true };
#endif

struct job_block {
    struct job job; /* first, so that a job finds its block */
    alignas(max_align_t) uint8_t memory[];
};

/* Blocks are taken and given by the group: all threads that admit or end jobs meet at this lock,
 * and nothing of a block itself is touched under it. */
static struct {
    pthread_mutex_t lock;
    size_t count;
    struct job_block *blocks[SPARES_MAX];
} spares = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns how many there were. */
static size_t take_spares(struct job_block **ret, size_t count) {
    pthread_mutex_lock(&spares.lock);
    if (count > spares.count) count = spares.count;
    spares.count -= count;
    for (size_t i = 0; i < count; i++) ret[i] = spares.blocks[spares.count + i];
    pthread_mutex_unlock(&spares.lock);
    return count;
}

/* Frees those that there is no place for. */
static void give_spares(struct job_block *const *blocks, size_t count) {
    size_t given = 0;
    if (KEEPS_SPARES) {
        pthread_mutex_lock(&spares.lock);
        while (given < count && spares.count < SPARES_MAX)
            spares.blocks[spares.count++] = blocks[given++];
        pthread_mutex_unlock(&spares.lock);
    }
    while (given < count) free(blocks[given++]);
}

/* False when memory is short. */
static bool job_init(struct job_block *block, struct delivery *delivery) {
    size_t bytes = delivery_room(delivery), room = JOB_BYTES - sizeof *block;
    if (bytes <= MESSAGE_MAX) {
        room = (room - bytes) & ~(alignof(max_align_t) - 1);
        delivery = delivery_move(delivery, block->memory + room);
    } else if (!delivery_may_stay(delivery) && !delivery_keep(delivery)) {
        return false;
    }
    block->job = (struct job){.delivery = delivery, .memory = block->memory, .memory_size = room};
    return true;
}

size_t jobs_create(struct delivery *const *deliveries, size_t count, struct job **ret) {
    struct job_block *blocks[JOBS_GROUP_MAX];
    size_t created = 0;
    INVARIANT(count <= JOBS_GROUP_MAX, "a group of jobs is no larger than JOBS_GROUP_MAX");
    size_t taken = take_spares(blocks, count);
    while (taken < count && (blocks[taken] = malloc(JOB_BYTES)) != NULL) taken++;
    while (created < taken && job_init(blocks[created], deliveries[created])) {
        ret[created] = &blocks[created]->job;
        created++;
    }
    give_spares(blocks + created, taken - created);
    return created;
}

struct job *job_create(struct delivery *delivery) {
    struct job *job;
    return jobs_create(&delivery, 1, &job) == 1 ? job : NULL;
}

void job_init_arena(struct job *job, size_t reserved_max) {
    arena_init_within(&job->arena, reserved_max, job->memory, job->memory_size);
}

static void destroy_group(struct job *const *jobs, size_t count) {
    struct job_block *blocks[JOBS_GROUP_MAX];
    struct shared *edition = NULL;
    size_t holders = 0; /* of `edition`, which jobs side by side nearly always share */
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->edition != edition) {
            shared_release_many(edition, holders);
            edition = jobs[i]->edition;
            holders = 0;
        }
        holders++;
        job_move(jobs[i], JOB_OVER);
        arena_fini(&jobs[i]->arena);
        delivery_destroy(jobs[i]->delivery);
        blocks[i] = (struct job_block *)jobs[i];
    }
    shared_release_many(edition, holders);
    give_spares(blocks, count);
}

void jobs_destroy(struct job *const *jobs, size_t count) {
    for (size_t i = 0; i < count; i += JOBS_GROUP_MAX)
        destroy_group(jobs + i, count - i < JOBS_GROUP_MAX ? count - i : JOBS_GROUP_MAX);
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

#include "cpu_driver/launch.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_driver/fiber.h"

enum { SHARED_POISON = 0xcb, VALUE_ALIGNMENT = 16 };

void cpu_engine_init(struct cpu_engine *engine) {
    *engine = (struct cpu_engine){.fibers = NULL};
}

void cpu_engine_fini(struct cpu_engine *engine) {
    cpu_fiber_pool_destroy(engine->fibers);
    free(engine->shared);
}

static size_t value_room(uint32_t bytes) {
    return ((size_t)bytes + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
}

struct cpu_launch *cpu_launch_create(const struct kernel_info *kernel, void *const *args) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->param_count; i++) bytes += value_room(kernel->param_bytes[i]);
    struct cpu_launch *launch = calloc(1, sizeof *launch + bytes);
    if (launch == NULL) return NULL;
    launch->kernel = kernel;
    unsigned char *value = launch->values;
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        launch->args[i] = value;
        memcpy(value, args[i], kernel->param_bytes[i]);
        value += value_room(kernel->param_bytes[i]);
    }
    return launch;
}

/* Fibers that have arrived at a barrier, in the order of their arrival. */
struct waiting {
    struct waiting *next;
    struct cpu_fiber *fiber;
};

struct run {
    const struct cpu_launch *launch;
    struct cpu_engine *engine;
    uint64_t blocks_left;
    uint32_t thread_count;         /* of a block */
    uint32_t started;              /* of this block's threads */
    uint32_t unfinished;           /* of those started */
    struct kernel_thread position; /* of the thread to start next */
    struct waiting *first, **end;
};

/* A thread's view of the launch; `self` comes first, so that a barrier finds the rest. */
struct running_thread {
    struct kernel_thread self;
    struct run *run;
};

static void step(uint32_t position[3], const uint32_t dim[3]) {
    for (int axis = 0; axis < 3; axis++) {
        if (++position[axis] < dim[axis]) return;
        position[axis] = 0;
    }
}

static bool block_is_over(const struct run *run) {
    return run->started == run->thread_count && run->unfinished == 0;
}

/* Shared memory comes with whatever the last block left in it: make that visible. */
static void poison_shared(const struct run *run) {
    if (run->launch->shared_bytes > 0)
        memset(run->position.shared, SHARED_POISON, run->launch->shared_bytes);
}

static void begin_next_block(struct run *run) {
    run->blocks_left--;
    run->started = 0;
    step(run->position.block, run->position.grid_dim);
    poison_shared(run);
}

static bool start_thread(struct run *run, struct running_thread *thread) {
    if (block_is_over(run) && run->blocks_left > 1) begin_next_block(run);
    if (run->started == run->thread_count) return false;
    *thread = (struct running_thread){.self = run->position, .run = run};
    step(run->position.thread, run->position.block_dim);
    run->started++;
    run->unfinished++;
    return true;
}

/* The body of a fiber: thread after thread, for as long as none is left waiting behind it. */
static void run_threads(void *argument) {
    struct run *run = argument;
    struct running_thread thread;
    while (start_thread(run, &thread)) {
        /* The entry takes its arguments' places, not the right to change them. */
        run->launch->kernel->entry(&thread.self, (void **)run->launch->args);
        run->unfinished--;
    }
}

static void barrier(const struct kernel_thread *self) {
    struct run *run = ((const struct running_thread *)self)->run;
    bool is_alone = run->started == run->thread_count && run->unfinished == 1;
    if (is_alone) return;
    struct waiting waiting = {.fiber = cpu_fiber_current(run->engine->fibers)};
    *run->end = &waiting;
    run->end = &waiting.next;
    cpu_fiber_yield(waiting.fiber);
}

/* Everybody who waits goes on, in order of arrival, until the next barrier or the end. */
static void release_waiting(struct run *run) {
    struct waiting *waiting = run->first;
    run->first = NULL;
    run->end = &run->first;
    while (waiting != NULL) {
        struct waiting *next = waiting->next; /* gone with its stack frame once it is resumed */
        cpu_fiber_resume(waiting->fiber);
        waiting = next;
    }
}

static bool run_all(struct run *run) {
    while (run->started < run->thread_count || run->first != NULL) {
        if (run->started == run->thread_count) {
            release_waiting(run);
            continue;
        }
        struct cpu_fiber *fiber = cpu_fiber_take(run->engine->fibers, run_threads, run);
        if (fiber == NULL) return false;
        cpu_fiber_resume(fiber);
    }
    return true;
}

static bool engine_prepare(struct cpu_engine *engine, size_t shared_bytes) {
    if (engine->fibers == NULL) engine->fibers = cpu_fiber_pool_create();
    if (engine->fibers == NULL) return false;
    if (shared_bytes <= engine->shared_bytes) return true;
    free(engine->shared);
    engine->shared_bytes = 0;
    engine->shared = aligned_alloc(256, (shared_bytes + 255) / 256 * 256);
    if (engine->shared == NULL) return false;
    engine->shared_bytes = shared_bytes;
    return true;
}

bool cpu_launch_run(const struct cpu_launch *launch, struct cpu_engine *engine) {
    if (!engine_prepare(engine, launch->shared_bytes)) return false;
    struct run run = {
        .launch = launch,
        .engine = engine,
        .blocks_left = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
        .thread_count = launch->block[0] * launch->block[1] * launch->block[2],
        .position = {.shared = engine->shared, .barrier = barrier},
    };
    memcpy(run.position.grid_dim, launch->grid, sizeof run.position.grid_dim);
    memcpy(run.position.block_dim, launch->block, sizeof run.position.block_dim);
    run.end = &run.first;
    poison_shared(&run);
    return run_all(&run);
}

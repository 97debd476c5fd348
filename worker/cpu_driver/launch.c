#include "cpu_driver/launch.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_driver/fiber.h"
#include "cpu_driver/module.h"

enum { SHARED_POISON = 0xcb, SHARED_ALIGNMENT = 256, VALUE_ALIGNMENT = 16 };

void cpu_engine_init(struct cpu_engine *engine) {
    *engine = (struct cpu_engine){.fibers = NULL};
}

void cpu_engine_fini(struct cpu_engine *engine) {
    cpu_fiber_pool_destroy(engine->fibers);
    free(engine->shared);
}

static size_t round_up(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

static size_t value_room(uint32_t bytes) {
    return round_up(bytes, VALUE_ALIGNMENT);
}

struct cpu_launch *cpu_launch_create(const struct kernel_info *kernel, struct cpu_module *module,
    const struct cpu_shape *shape, void *const *args) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->param_count; i++) bytes += value_room(kernel->param_bytes[i]);
    struct cpu_launch *launch = calloc(1, sizeof *launch + bytes);
    if (launch == NULL) return NULL;
    launch->kernel = kernel;
    launch->module = module;
    launch->shape = *shape;
    if (module != NULL) module->users++;
    unsigned char *value = launch->values;
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        launch->args[i] = value;
        memcpy(value, args[i], kernel->param_bytes[i]);
        value += value_room(kernel->param_bytes[i]);
    }
    return launch;
}

struct cpu_launch *cpu_launch_copy(const struct cpu_launch *launch) {
    return cpu_launch_create(launch->kernel, launch->module, &launch->shape, launch->args);
}

void cpu_launch_destroy(struct cpu_launch *launch) {
    if (launch == NULL) return;
    if (launch->module != NULL) cpu_module_unuse(launch->module);
    free(launch);
}

/* Fibers that have arrived at a barrier, in the order of their arrival. */
struct waiting {
    struct waiting *next;
    struct cpu_fiber *fiber;
};

struct waiting_list {
    struct waiting *first, **end;
};

/*
 * Runs blocks one after the other: all blocks of an ordinary grid, or one block of a cooperative
 * grid, which has a run for each block.
 */
struct run {
    const struct cpu_launch *launch;
    struct cpu_fiber_pool *fibers;
    uint64_t blocks_left;
    uint32_t thread_count;         /* of a block */
    uint32_t started;              /* of this block's threads */
    uint32_t unfinished;           /* of those started */
    struct kernel_thread position; /* of the thread to start next */
    struct waiting_list at_barrier;
    struct waiting_list *at_grid_barrier; /* shared by all runs */
};

/* A thread's view of the launch; `self` comes first, so that a barrier finds the rest. */
struct running_thread {
    struct kernel_thread self;
    struct run *run;
};

static void waiting_init(struct waiting_list *list) {
    *list = (struct waiting_list){.end = &list->first};
}

/* Leaves the running fiber on the list until it is released. */
static void wait_in(struct waiting_list *list, const struct cpu_fiber_pool *fibers) {
    struct waiting waiting = {.fiber = cpu_fiber_current(fibers)};
    *list->end = &waiting;
    list->end = &waiting.next;
    cpu_fiber_yield(waiting.fiber);
}

/* All waiting fibers go on, in order of arrival, until the next barrier or the end. */
static void release(struct waiting_list *list) {
    struct waiting *waiting = list->first;
    waiting_init(list);
    while (waiting != NULL) {
        struct waiting *next = waiting->next; /* gone with its stack frame once it is resumed */
        cpu_fiber_resume(waiting->fiber);
        waiting = next;
    }
}

static void step(uint32_t position[3], const uint32_t dim[3]) {
    for (int axis = 0; axis < 3; axis++) {
        if (++position[axis] < dim[axis]) return;
        position[axis] = 0;
    }
}

static bool block_is_over(const struct run *run) {
    return run->started == run->thread_count && run->unfinished == 0;
}

/*
 * On a GPU shared memory holds whatever the last block left. Fill it with a pattern, so that
 * reading it shows.
 */
static void poison_shared(const struct run *run) {
    if (run->launch->shape.shared_bytes > 0)
        memset(run->position.shared, SHARED_POISON, run->launch->shape.shared_bytes);
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

/* The body of a fiber: runs one thread after another, until one had to wait at a barrier. */
static void run_threads(void *argument) {
    struct run *run = argument;
    struct running_thread thread;
    while (start_thread(run, &thread)) {
        /* the entry must not change its arguments */
        run->launch->kernel->entry(&thread.self, (void **)run->launch->args);
        run->unfinished--;
    }
}

static void barrier(const struct kernel_thread *self) {
    struct run *run = ((const struct running_thread *)self)->run;
    bool is_alone = run->started == run->thread_count && run->unfinished == 1;
    if (!is_alone) wait_in(&run->at_barrier, run->fibers);
}

static void grid_barrier(const struct kernel_thread *self) {
    struct run *run = ((const struct running_thread *)self)->run;
    wait_in(run->at_grid_barrier, run->fibers);
}

/* Runs until the end, or until all remaining threads wait at the grid's barrier. */
static bool run_on(struct run *run) {
    while (run->started < run->thread_count || run->at_barrier.first != NULL) {
        if (run->started == run->thread_count) {
            release(&run->at_barrier);
            continue;
        }
        struct cpu_fiber *fiber = cpu_fiber_take(run->fibers, run_threads, run);
        if (fiber == NULL) return false;
        cpu_fiber_resume(fiber);
    }
    return true;
}

static uint64_t product(const uint32_t dim[3]) {
    return (uint64_t)dim[0] * dim[1] * dim[2];
}

static void run_init(struct run *run, const struct cpu_launch *launch, struct cpu_engine *engine,
    uint64_t blocks, void *shared, struct waiting_list *at_grid_barrier) {
    *run = (struct run){
        .launch = launch,
        .fibers = engine->fibers,
        .blocks_left = blocks,
        .thread_count = (uint32_t)product(launch->shape.block),
        .position = {.shared = shared,
            .barrier = barrier,
            .grid_barrier = grid_barrier,
            .shared_bytes = launch->shape.shared_bytes},
        .at_grid_barrier = at_grid_barrier,
    };
    memcpy(run->position.grid_dim, launch->shape.grid, sizeof run->position.grid_dim);
    memcpy(run->position.block_dim, launch->shape.block, sizeof run->position.block_dim);
    waiting_init(&run->at_barrier);
    poison_shared(run);
}

static bool engine_prepare(struct cpu_engine *engine, size_t shared_bytes) {
    if (engine->fibers == NULL) engine->fibers = cpu_fiber_pool_create();
    if (engine->fibers == NULL) return false;
    if (shared_bytes <= engine->shared_bytes) return true;
    free(engine->shared);
    engine->shared_bytes = 0;
    engine->shared = aligned_alloc(SHARED_ALIGNMENT, shared_bytes);
    if (engine->shared == NULL) return false;
    engine->shared_bytes = shared_bytes;
    return true;
}

static CUresult run_ordinary(const struct cpu_launch *launch, struct cpu_engine *engine) {
    struct run run;
    struct waiting_list at_grid_barrier;
    waiting_init(&at_grid_barrier);
    run_init(&run, launch, engine, product(launch->shape.grid), engine->shared, &at_grid_barrier);
    if (!run_on(&run)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return at_grid_barrier.first == NULL ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

/* A run for each block, in turns from grid barrier to grid barrier. */
static CUresult run_cooperative(
    const struct cpu_launch *launch, struct cpu_engine *engine, size_t shared_bytes) {
    uint64_t blocks = product(launch->shape.grid); /* few, since they fit at once */
    struct run *runs = calloc(blocks, sizeof runs[0]);
    struct waiting_list at_grid_barrier;
    uint32_t block[3] = {0};
    bool has_memory = runs != NULL;
    waiting_init(&at_grid_barrier);
    for (uint64_t i = 0; i < blocks && has_memory; i++) {
        unsigned char *shared = engine->shared;
        if (shared != NULL) shared += i * shared_bytes;
        run_init(&runs[i], launch, engine, 1, shared, &at_grid_barrier);
        memcpy(runs[i].position.block, block, sizeof block);
        step(block, launch->shape.grid);
        has_memory = run_on(&runs[i]);
    }
    while (has_memory && at_grid_barrier.first != NULL) {
        release(&at_grid_barrier);
        for (uint64_t i = 0; i < blocks && has_memory; i++) has_memory = run_on(&runs[i]);
    }
    free(runs);
    return has_memory ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

CUresult cpu_launch_run(const struct cpu_launch *launch, struct cpu_engine *engine) {
    size_t shared_bytes = round_up(launch->shape.shared_bytes, SHARED_ALIGNMENT);
    size_t at_once = launch->shape.is_cooperative ? product(launch->shape.grid) : 1;
    if (!engine_prepare(engine, at_once * shared_bytes)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (launch->shape.is_cooperative) return run_cooperative(launch, engine, shared_bytes);
    return run_ordinary(launch, engine);
}

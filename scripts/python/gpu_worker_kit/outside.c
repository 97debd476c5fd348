/* Runs one kernel of a CPU image under the address sanitizer. Each buffer lies in memory of just
 * its size, and each thread of a block is a thread. Blocks run one after the other; those of a
 * cooperative launch run at once. KERNEL_INFO names the kernel's description (kernel_cpu.h). */
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_cpu.h"

extern const struct kernel_info KERNEL_INFO;

enum { STACK_BYTES = 512 << 10, NEAR_BYTES = 1 << 30 };

struct buffer {
    char name[128];
    uint32_t width;
    size_t bytes;
    char *data;
};

static struct {
    uint32_t grid[3], block[3], shared_bytes, count;
    struct buffer *buffers; /* also the shared memory of each block that runs */
    size_t buffer_count;
    char *values[KERNEL_PARAMS_MAX];
    void *args[KERNEL_PARAMS_MAX];
} job;

static _Thread_local const struct kernel_thread *current;

/* --- what the sanitizer finds --- */

/* Finds the buffer that is nearest to the address, and how far the address is from its start. */
static const struct buffer *nearest(const char *address, long long *offset) {
    const struct buffer *found = NULL;
    long long least = NEAR_BYTES;
    for (size_t i = 0; i < job.buffer_count; i++) {
        const struct buffer *buffer = &job.buffers[i];
        long long from_start = (long long)((intptr_t)address - (intptr_t)buffer->data);
        long long past = from_start - (long long)buffer->bytes;
        long long distance = from_start < 0 ? -from_start : past < 0 ? 0 : past;
        if (distance >= least) continue;
        least = distance;
        found = buffer;
        *offset = from_start;
    }
    return found;
}

/* The sanitizer calls this when it finds a wrong access, and ends the process afterwards. */
void __asan_on_error(void) {
    const char *verb = __asan_get_report_access_type() ? "writes" : "reads";
    long long offset = 0;
    const struct buffer *buffer = nearest(__asan_get_report_address(), &offset);
    if (buffer == NULL) {
        fprintf(stderr, "outside: %s far from all its buffers", verb);
    } else {
        long long width = buffer->width, index = (offset - (offset < 0 ? width - 1 : 0)) / width;
        fprintf(stderr, "outside: %s %s[%lld], and %s has %zu elements", verb, buffer->name, index,
            buffer->name, buffer->bytes / buffer->width);
    }
    if (current != NULL)
        fprintf(stderr, " (block %u, %u, %u, thread %u, %u, %u)", current->block[0],
            current->block[1], current->block[2], current->thread[0], current->thread[1],
            current->thread[2]);
    fputc('\n', stderr);
}

/* --- barriers --- */

/* Threads that wait for each other: those of a block, or of the whole grid. */
struct group {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t waiting, running; /* running: those that have not returned */
    uint64_t generation;
};

static void group_init(struct group *group) {
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->moved, NULL);
}

static void open_if_all_wait(struct group *group) {
    if (group->running == 0 || group->waiting < group->running) return;
    group->waiting = 0;
    group->generation++;
    pthread_cond_broadcast(&group->moved);
}

static void group_wait(struct group *group) {
    pthread_mutex_lock(&group->lock);
    uint64_t now = group->generation;
    group->waiting++;
    open_if_all_wait(group);
    while (now == group->generation) pthread_cond_wait(&group->moved, &group->lock);
    pthread_mutex_unlock(&group->lock);
}

static void group_leave(struct group *group) {
    pthread_mutex_lock(&group->lock);
    group->running--;
    open_if_all_wait(group);
    pthread_mutex_unlock(&group->lock);
}

/* --- threads --- */

/* One block at a time runs here. */
struct place {
    struct group block;
    void *shared;
};

struct thread {
    struct kernel_thread self; /* first: the kernel's pointer to it is one to the whole */
    struct place *place;
    uint32_t place_index, number; /* number: within its block */
};

static struct place *places;
static uint32_t place_count, block_threads;
static struct group grid;
static pthread_barrier_t between_blocks;

static void wait_for_block(const struct kernel_thread *self) {
    group_wait(&((const struct thread *)self)->place->block);
}

static void wait_for_grid(const struct kernel_thread *self) {
    (void)self;
    group_wait(&grid);
}

/* Gives the block new shared memory. It is listed behind the buffers of the case, so that wrong
 * accesses to it are named, too. */
static void begin_block(struct thread *thread) {
    struct place *place = thread->place;
    struct buffer *shared = &job.buffers[job.buffer_count - place_count + thread->place_index];
    free(place->shared);
    place->shared = malloc(job.shared_bytes > 0 ? job.shared_bytes : 1);
    if (place->shared == NULL) abort();
    shared->data = place->shared;
    place->block.running = block_threads;
}

static void *run_thread(void *context) {
    struct thread *thread = context;
    struct kernel_thread *self = &thread->self;
    uint64_t blocks = (uint64_t)job.grid[0] * job.grid[1] * job.grid[2];
    for (uint64_t i = thread->place_index; i < blocks; i += place_count) {
        pthread_barrier_wait(&between_blocks);
        if (thread->number == 0) begin_block(thread);
        pthread_barrier_wait(&between_blocks);
        self->block[0] = (uint32_t)(i % job.grid[0]);
        self->block[1] = (uint32_t)(i / job.grid[0] % job.grid[1]);
        self->block[2] = (uint32_t)(i / job.grid[0] / job.grid[1]);
        self->shared = thread->place->shared;
        current = self;
        KERNEL_INFO.entry(self, job.args);
        current = NULL;
        group_leave(&thread->place->block);
    }
    group_leave(&grid);
    return NULL;
}

static void start_thread(pthread_t *started, struct thread *thread, uint32_t index) {
    uint32_t number = index % block_threads;
    thread->place_index = index / block_threads;
    thread->place = &places[thread->place_index];
    thread->number = number;
    thread->self = (struct kernel_thread){
        .thread = {number % job.block[0], number / job.block[0] % job.block[1],
            number / job.block[0] / job.block[1]},
        .barrier = wait_for_block,
        .grid_barrier = wait_for_grid,
        .shared_bytes = job.shared_bytes};
    memcpy(thread->self.block_dim, job.block, sizeof job.block);
    memcpy(thread->self.grid_dim, job.grid, sizeof job.grid);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(started, &attributes, run_thread, thread) == 0) return;
    fprintf(stderr, "no more than %u threads can be started here\n", index);
    exit(1);
}

static int run(void) {
    uint32_t count = place_count * block_threads;
    pthread_t *started = calloc(count, sizeof *started);
    struct thread *threads = calloc(count, sizeof *threads);
    if (started == NULL || threads == NULL) return 1;
    for (uint32_t i = 0; i < place_count; i++) group_init(&places[i].block);
    group_init(&grid);
    grid.running = count;
    pthread_barrier_init(&between_blocks, NULL, count);
    for (uint32_t i = 0; i < count; i++) start_thread(&started[i], &threads[i], i);
    for (uint32_t i = 0; i < count; i++) pthread_join(started[i], NULL);
    return 0;
}

/* --- the case --- */

static void take(FILE *in, void *to, size_t size) {
    if (size > 0 && fread(to, size, 1, in) != 1) {
        fprintf(stderr, "the case is cut\n");
        exit(1);
    }
}

static void read_argument(FILE *in, uint32_t i) {
    uint32_t is_buffer, name_size, width;
    uint64_t bytes;
    struct buffer *buffer = &job.buffers[job.buffer_count];
    take(in, &is_buffer, sizeof is_buffer);
    take(in, &name_size, sizeof name_size);
    take(in, &width, sizeof width);
    take(in, &bytes, sizeof bytes);
    if (name_size >= sizeof buffer->name) exit(1);
    take(in, buffer->name, name_size);
    buffer->name[name_size] = 0;
    char *data = malloc(bytes > 0 ? bytes : 1);
    if (data == NULL) exit(1);
    take(in, data, bytes);
    job.values[i] = data;
    job.args[i] = is_buffer ? (void *)&job.values[i] : data;
    if (!is_buffer) return;
    buffer->width = width;
    buffer->bytes = bytes;
    buffer->data = data;
    job.buffer_count++;
}

int main(int argc, char **argv) {
    FILE *in = argc == 2 ? fopen(argv[1], "rb") : NULL;
    uint32_t head[9];
    if (in == NULL) return 2;
    take(in, head, sizeof head);
    memcpy(job.grid, head, sizeof job.grid);
    memcpy(job.block, head + 3, sizeof job.block);
    job.shared_bytes = head[6];
    job.count = head[7];
    block_threads = job.block[0] * job.block[1] * job.block[2];
    place_count = head[8] ? job.grid[0] * job.grid[1] * job.grid[2] : 1;
    places = calloc(place_count, sizeof *places);
    job.buffers = calloc(KERNEL_PARAMS_MAX + place_count, sizeof *job.buffers);
    if (places == NULL || job.buffers == NULL) return 1;
    if (job.count > KERNEL_PARAMS_MAX || job.count != KERNEL_INFO.param_count) {
        fprintf(stderr, "the kernel has %u parameters, the case %u\n", KERNEL_INFO.param_count,
            job.count);
        return 1;
    }
    for (uint32_t i = 0; i < job.count; i++) read_argument(in, i);
    fclose(in);
    for (uint32_t i = 0; i < place_count; i++)
        job.buffers[job.buffer_count++] =
            (struct buffer){.name = "shared memory", .width = 1, .bytes = job.shared_bytes};
    return run();
}

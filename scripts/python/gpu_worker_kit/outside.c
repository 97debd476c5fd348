/* Runs one kernel of a CPU image on threads, with each buffer in a block of just its size, for the
 * address sanitizer. KERNEL_INFO names the kernel's description (kernel_cpu.h). */
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
    struct buffer buffers[KERNEL_PARAMS_MAX + 1]; /* and the shared memory of the block */
    size_t buffer_count;
    char *values[KERNEL_PARAMS_MAX];
    void *args[KERNEL_PARAMS_MAX];
    void *shared;
} job;

static _Thread_local const struct kernel_thread *current;

/* --- what the sanitizer finds --- */

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static uint32_t waiting, running; /* threads of the block that have not returned */
static uint64_t generation;

static void open_if_all_wait(void) {
    if (running == 0 || waiting < running) return;
    waiting = 0;
    generation++;
    pthread_cond_broadcast(&moved);
}

static void wait_for_block(const struct kernel_thread *self) {
    (void)self;
    pthread_mutex_lock(&lock);
    uint64_t now = generation;
    waiting++;
    open_if_all_wait();
    while (now == generation) pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
}

static void leave_block(void) {
    pthread_mutex_lock(&lock);
    running--;
    open_if_all_wait();
    pthread_mutex_unlock(&lock);
}

/* --- threads --- */

static pthread_barrier_t between_blocks;
static uint32_t threads;

static void begin_block(void) {
    struct buffer *shared = &job.buffers[job.buffer_count - 1];
    free(job.shared);
    job.shared = malloc(job.shared_bytes > 0 ? job.shared_bytes : 1);
    if (job.shared == NULL) abort();
    shared->data = job.shared;
    running = threads;
}

static void *run_thread(void *context) {
    uint32_t number = (uint32_t)(uintptr_t)context;
    uint64_t blocks = (uint64_t)job.grid[0] * job.grid[1] * job.grid[2];
    for (uint64_t i = 0; i < blocks; i++) {
        pthread_barrier_wait(&between_blocks);
        if (number == 0) begin_block();
        pthread_barrier_wait(&between_blocks);
        struct kernel_thread self = {
            .thread = {number % job.block[0], number / job.block[0] % job.block[1],
                number / job.block[0] / job.block[1]},
            .block = {(uint32_t)(i % job.grid[0]), (uint32_t)(i / job.grid[0] % job.grid[1]),
                (uint32_t)(i / job.grid[0] / job.grid[1])},
            .shared = job.shared,
            .barrier = wait_for_block,
            .grid_barrier = wait_for_block};
        memcpy(self.block_dim, job.block, sizeof job.block);
        memcpy(self.grid_dim, job.grid, sizeof job.grid);
        current = &self;
        KERNEL_INFO.entry(&self, job.args);
        current = NULL;
        leave_block();
    }
    return NULL;
}

static int run(void) {
    threads = job.block[0] * job.block[1] * job.block[2];
    pthread_t *all = calloc(threads, sizeof *all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&between_blocks, NULL, threads);
    if (all == NULL) return 1;
    for (uint32_t i = 0; i < threads; i++)
        if (pthread_create(&all[i], &attributes, run_thread, (void *)(uintptr_t)i) != 0) {
            fprintf(stderr, "no more than %u threads can be started here\n", i);
            exit(1);
        }
    for (uint32_t i = 0; i < threads; i++) pthread_join(all[i], NULL);
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
    uint32_t head[8];
    if (in == NULL) return 2;
    take(in, head, sizeof head);
    memcpy(job.grid, head, sizeof job.grid);
    memcpy(job.block, head + 3, sizeof job.block);
    job.shared_bytes = head[6];
    job.count = head[7];
    if (job.count > KERNEL_PARAMS_MAX || job.count != KERNEL_INFO.param_count) {
        fprintf(stderr, "the kernel has %u parameters, the case %u\n", KERNEL_INFO.param_count,
            job.count);
        return 1;
    }
    for (uint32_t i = 0; i < job.count; i++) read_argument(in, i);
    fclose(in);
    job.buffers[job.buffer_count++] =
        (struct buffer){.name = "shared memory", .width = 1, .bytes = job.shared_bytes};
    return run();
}

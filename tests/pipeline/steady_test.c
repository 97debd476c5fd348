/* Proves: pools that all threads share; cached streams and events. */
/*
 * What it costs to run a job once the worker runs: no heap allocation on a lane's thread, and no
 * allocation by the driver. malloc and its kin are replaced by ones that count those of threads
 * named "lane-".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { FEW_JOBS = 300, MANY_JOBS = 6000 };

/* --- the heap --- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_size_t lane_allocations;
static _Thread_local int in_driver; /* a real driver's memory is no concern of ours */

static void count_allocation(void) {
    char name[16] = "";
    if (in_driver > 0 || prctl(PR_GET_NAME, name) != 0) return;
    if (strncmp(name, "lane-", 5) == 0) atomic_fetch_add(&lane_allocations, 1);
}

void *malloc(size_t size) {
    count_allocation();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_allocation();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    count_allocation();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_allocation();
    return __libc_memalign(alignment, size);
}

/* --- the driver, which allocates for what it has queued --- */

static struct gpu_driver real;

#define OUTSIDE_THE_COUNT(field, parameters, arguments)                                            \
    static CUresult CUDAAPI field##_uncounted parameters {                                         \
        in_driver++;                                                                               \
        CUresult result = real.field arguments;                                                    \
        in_driver--;                                                                               \
        return result;                                                                             \
    }

OUTSIDE_THE_COUNT(copy_to_device, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
    (to, from, bytes, stream))
OUTSIDE_THE_COUNT(copy_to_host, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
    (to, from, bytes, stream))
OUTSIDE_THE_COUNT(fill, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream),
    (to, value, bytes, stream))
OUTSIDE_THE_COUNT(event_record, (CUevent event, CUstream stream), (event, stream))
OUTSIDE_THE_COUNT(launch,
    (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
        unsigned bz, unsigned shared, CUstream stream, void **params, void **extra),
    (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra))

void __real_cpu_driver_table(struct gpu_driver *ret);
void __wrap_cpu_driver_table(struct gpu_driver *ret);

void __wrap_cpu_driver_table(struct gpu_driver *ret) {
    __real_cpu_driver_table(&real);
    *ret = real;
    ret->copy_to_device = copy_to_device_uncounted;
    ret->copy_to_host = copy_to_host_uncounted;
    ret->fill = fill_uncounted;
    ret->event_record = event_record_uncounted;
    ret->launch = launch_uncounted;
}

/* --- the tests --- */

struct costs {
    size_t lane_allocations;
    uint64_t driver_allocations; /* of memory, streams and events */
};

static struct costs costs_of(int jobs, enum stream_choice stream) {
    struct run *run;
    assert_int_equal(run_set_up((void **)&run), 0);
    run->settings.batch.stream = stream;
    run->broker.settle_ns = 1; /* its sink allocates: the publisher's thread is to send */
    run->settings.ordering = ORDERING_KEY; /* lanes only run jobs: the intake admits all messages */
    for (int k = 0; k < jobs; k++) run_add_saxpy(run, k);
    atomic_store(&lane_allocations, 0);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, jobs);
    const uint64_t *calls = cpu_driver_counters().calls;
    struct costs costs = {.lane_allocations = atomic_load(&lane_allocations),
        .driver_allocations = calls[CPU_memory_alloc] + calls[CPU_host_alloc] +
                              calls[CPU_stream_create] + calls[CPU_event_create]};
    run_tear_down((void **)&run);
    return costs;
}

static void *allocate(void *context) {
    pthread_setname_np(pthread_self(), "lane-of-test");
    void *volatile memory = malloc(100); /* volatile: or the compiler leaves both calls out */
    free(memory);
    return NULL;
}

TEST(what_a_lane_allocates_is_seen) {
    pthread_t thread;
    atomic_store(&lane_allocations, 0);
    assert_int_equal(pthread_create(&thread, NULL, allocate, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&lane_allocations), 1);
}

TEST(a_lane_allocates_nothing_for_a_job_and_neither_does_the_driver) {
    static const enum stream_choice streams[] = {STREAM_COPIED, STREAM_MAPPED};
    for (int i = 0; i < 2; i++) {
        struct costs few = costs_of(FEW_JOBS, streams[i]), many = costs_of(MANY_JOBS, streams[i]);
        assert_int_equal(many.lane_allocations, 0);
        assert_true(few.driver_allocations > 0);
        assert_int_equal(many.driver_allocations, few.driver_allocations);
    }
}

RUN_TESTS(T(what_a_lane_allocates_is_seen),
    T(a_lane_allocates_nothing_for_a_job_and_neither_does_the_driver))

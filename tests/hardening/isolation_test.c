/* A tenant with secrets, and one that knows the address of every byte that the worker has on the
 * device or pinned, and reads them all while the other's jobs come and go: as far as any program
 * can reach. GPU_WORKER_TEST_DRIVER=cpu or cuda. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gpu/driver.h"
#include "support/run.h"
#include "testing.h"

enum {
    ROUNDS = 30,
    PLACES_MAX = 256, /* of the worker's memory, and in a job of the one who looks */
    PLACES_BYTES = PLACES_MAX * 16,
    SECRET_WORDS = 64,
    SLAB_BYTES = 64 << 10,
    LARGE_BYTES = 4 * SLAB_BYTES, /* of a buffer that takes a block of the pools */
    MANY_PLACES = 8,
    RUNS_MAX = 5, /* until secrets lay in many places */
    SPAN_MS_OF_ANY_MACHINE = 600000
};

/* Stands in the memory of its owner's jobs, and nowhere else as it is. */
#define SECRET 0x5ec2e7a95b3d1f47u

/* --- what the worker has of the driver --- */

struct place {
    uint64_t address, bytes;
};

static struct {
    pthread_mutex_t lock;
    const struct gpu_driver *driver;
    struct place items[PLACES_MAX];
    bool is_pinned[PLACES_MAX];
    size_t count;
    atomic_bool has_come_back; /* something, from the device */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void memory_add(uint64_t address, uint64_t bytes, bool is_pinned) {
    pthread_mutex_lock(&memory.lock);
    if (memory.count == PLACES_MAX) abort(); /* the test knows the sizes of its worker */
    memory.items[memory.count] = (struct place){address, bytes};
    memory.is_pinned[memory.count++] = is_pinned;
    pthread_mutex_unlock(&memory.lock);
}

/* The place stays, empty, so that places keep their numbers. */
static void memory_remove(uint64_t address) {
    pthread_mutex_lock(&memory.lock);
    for (size_t i = 0; i < memory.count; i++)
        if (memory.items[i].address == address) memory.items[i].bytes = 0;
    pthread_mutex_unlock(&memory.lock);
}

static CUresult CUDAAPI note_alloc(CUdeviceptr *ret, size_t bytes) {
    CUresult result = memory.driver->memory_alloc(ret, bytes);
    if (result == CUDA_SUCCESS) memory_add(*ret, bytes, false);
    return result;
}

static CUresult CUDAAPI note_free(CUdeviceptr address) {
    memory_remove(address);
    return memory.driver->memory_free(address);
}

static CUresult CUDAAPI note_host_alloc(void **ret, size_t bytes, unsigned flags) {
    CUresult result = memory.driver->host_alloc(ret, bytes, flags);
    if (result == CUDA_SUCCESS) memory_add((uintptr_t)*ret, bytes, true);
    return result;
}

static CUresult CUDAAPI note_host_free(void *data) {
    memory_remove((uintptr_t)data);
    return memory.driver->host_free(data);
}

static CUresult CUDAAPI note_copy_to_host(
    void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult result = memory.driver->copy_to_host(to, from, bytes, stream);
    atomic_store(&memory.has_come_back, true);
    return result;
}

enum err __real_gpu_driver_open(enum gpu_driver_kind kind, const struct gpu_cpu_options *cpu,
    const struct gpu_driver **ret, struct error *err);
enum err __wrap_gpu_driver_open(enum gpu_driver_kind kind, const struct gpu_cpu_options *cpu,
    const struct gpu_driver **ret, struct error *err);

enum err __wrap_gpu_driver_open(enum gpu_driver_kind kind, const struct gpu_cpu_options *cpu,
    const struct gpu_driver **ret, struct error *err) {
    static struct gpu_driver noting;
    enum err code = __real_gpu_driver_open(kind, cpu, &memory.driver, err);
    if (code != ERR_OK) return code;
    noting = *memory.driver;
    noting.memory_alloc = note_alloc;
    noting.memory_free = note_free;
    noting.host_alloc = note_host_alloc;
    noting.host_free = note_host_free;
    noting.copy_to_host = note_copy_to_host;
    memory.count = 0;
    atomic_store(&memory.has_come_back, false);
    *ret = &noting;
    return ERR_OK;
}

/* --- jobs --- */

static const char *secret_hex(void) {
    static char hex[SECRET_WORDS * 16 + 1];
    for (size_t i = 0; i < SECRET_WORDS; i++) {
        const uint64_t word = SECRET;
        for (size_t k = 0; k < 8; k++)
            snprintf(hex + (i * 8 + k) * 2, 3, "%02x", ((const uint8_t *)&word)[k]);
    }
    return hex;
}

/* The buffer's last words are zero, and then the kernel fills in the one that it got as a value. */
static void add_small(struct run *run, const char *entry, int n) {
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
        "id: %s-%d\nbuffers: {from: {data: {hex: '%s'}}, to: {bytes: %d}}\n"
        "steps: [{program: keeper, entry: %s, args: [from, to, {u64: %" PRIu64
        "}, {u32: %d}], elements: %d}]\noutputs: [{buffer: to}]\n",
        entry, n, secret_hex(), SECRET_WORDS * 8, entry, (uint64_t)SECRET, SECRET_WORDS,
        SECRET_WORDS);
    run_add_keyed(run, "owner", yaml);
}

/* `outputs` in YAML, of `to`. */
static void add_large(struct run *run, int n, const char *outputs) {
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
        "id: large-%d\nbuffers:\n"
        "  from: {bytes: %d, writes: [{offset: %d, data: {hex: '%s'}}]}\n"
        "  to: {bytes: %d}\n"
        "steps: [{program: keeper, entry: keep, args: [from, to, {u64: %" PRIu64
        "}, {u32: %d}], elements: %d}]\n"
        "outputs: [{buffer: to%s}]\n",
        n, LARGE_BYTES, LARGE_BYTES / 2, secret_hex(), LARGE_BYTES, (uint64_t)SECRET,
        LARGE_BYTES / 8, LARGE_BYTES / 8, outputs);
    run_add_keyed(run, "owner", yaml);
}

/* The places are filled in when the job is taken. */
static struct memory_place *add_search(struct run *run, int n) {
    static char hex[PLACES_BYTES * 2 + 1], yaml[PLACES_BYTES * 2 + 512];
    memset(hex, 'a', PLACES_BYTES * 2);
    snprintf(yaml, sizeof yaml,
        "id: search-%d\nbuffers: {found: {bytes: %d}, places: {data: {hex: '%s'}}}\n"
        "steps: [{program: probe, args: [found, places, {u32: %d}, {u64: %" PRIu64
        "}], grid: [8]}]\noutputs: [{buffer: found}]\n",
        n, PLACES_MAX * 4, hex, PLACES_MAX, ~(uint64_t)SECRET);
    return run_add_keyed(run, "stranger", yaml);
}

/* On the thread that polls: the next job, if it searches, searches all that there is now. */
static void tell_places(struct run *run) {
    static uint8_t untold[PLACES_BYTES];
    if (run->broker.next == run->job_count) return;
    struct slice job = run->jobs[run->broker.next];
    memset(untold, 0xaa, sizeof untold);
    uint8_t *places = memmem(job.data, job.size, untold, sizeof untold);
    if (places == NULL) return;
    pthread_mutex_lock(&memory.lock);
    memset(places, 0, PLACES_BYTES);
    memcpy(places, memory.items, memory.count * sizeof memory.items[0]);
    pthread_mutex_unlock(&memory.lock);
}

struct found {
    uint64_t device, pinned; /* words, over all searches */
    uint64_t places;         /* in so many */
};

static struct found sum_found(struct run *run, int searches) {
    struct found found = {0};
    uint64_t by_place[PLACES_MAX] = {0};
    for (int n = 0; n < searches; n++) {
        char id[32];
        msgpack_unpacked unpacked;
        snprintf(id, sizeof id, "search-%d", n);
        msgpack_object result = run_unpack_result(run, id, &unpacked);
        const msgpack_object *outputs = msgpack_get(&result, "outputs");
        assert_non_null(outputs);
        const msgpack_object *data = msgpack_get(&outputs->via.array.ptr[0], "data");
        const uint8_t *bytes = (const uint8_t *)data->via.bin.ptr;
        for (size_t k = 0; k < PLACES_MAX; k++) {
            uint32_t words;
            memcpy(&words, bytes + 4 * k, sizeof words);
            by_place[k] += words;
        }
        msgpack_unpacked_destroy(&unpacked);
    }
    for (size_t k = 0; k < memory.count; k++) {
        if (by_place[k] > 0) found.places++;
        *(memory.is_pinned[k] ? &found.pinned : &found.device) += by_place[k];
    }
    return found;
}

/* --- the worker --- */

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    const char *driver = getenv("GPU_WORKER_TEST_DRIVER");
    if (driver != NULL && strcmp(driver, "cuda") == 0) run->settings.driver = DRIVER_CUDA;
    run_set_text(&run->settings.programs.dir, ISOLATION_FOLDER);
    run->settings.batch.stream = STREAM_MAPPED;
    run->settings.batch.span_ms = SPAN_MS_OF_ANY_MACHINE;
    run->settings.lane_slab_bytes = SLAB_BYTES;
    run->settings.batch.jobs = 4; /* many batches, so that secrets lie in the slabs of many */
    run->settings.prepare.threads = 1;
    run->on_poll = tell_places;
    return code;
}

static struct found run_searches(struct run *run, int searches) {
    run_execute_ok(run);
    assert_int_equal(run->summary.errors, 0);
    return sum_found(run, searches);
}

static void assert_nothing_found(struct found found) {
    assert_int_equal(found.device, 0);
    assert_int_equal(found.pinned, 0);
}

/* Small jobs in two forms, alone and coalesced, and large ones; a search among them and behind. */
static struct found search_among_secrets(struct run *run, enum isolation_choice isolation) {
    run->settings.batch.isolation = isolation;
    for (int n = 0; n < ROUNDS; n++) {
        for (int k = 0; k < 3; k++) add_small(run, "keep", 3 * n + k);
        add_small(run, "keep_streamed", n);
        if (n % 4 == 0) add_large(run, n, ", offset: 0, bytes: 1024");
        add_search(run, n);
    }
    add_search(run, ROUNDS)->comes_last = true;
    struct found found = run_searches(run, ROUNDS + 1);
    print_message("isolation %d: %" PRIu64 " words on the device, %" PRIu64 " pinned, in %" PRIu64
                  " of %zu places\n",
        (int)isolation, found.device, found.pinned, found.places, memory.count);
    return found;
}

TEST(nothing_of_another_key_is_found) {
    assert_nothing_found(search_among_secrets(*state, ISOLATE_KEY));
}

TEST(nothing_of_another_program_is_found) {
    assert_nothing_found(search_among_secrets(*state, ISOLATE_PROGRAM));
}

/* So that the searches above are known to find what is there. How many lanes share the batches, and
 * so how many places hold secrets, is up to the scheduler: on a busy machine one lane may do nearly
 * all. */
TEST(without_isolation_secrets_are_found_on_the_device_and_pinned) {
    struct found found = {0};
    for (int runs = 0; runs < RUNS_MAX && found.places <= MANY_PLACES; runs++) {
        run_forget(*state);
        found = search_among_secrets(*state, ISOLATE_NONE);
        assert_true(found.device > 0);
        assert_true(found.pinned > 0);
    }
    assert_true(found.places > MANY_PLACES);
}

/* Once the first job's outputs are on their way back, their place is known, and the search comes.
 */
static void tell_places_of_outputs(struct run *run) {
    if (!atomic_load(&memory.has_come_back)) return;
    run->places[1].comes_after = 0;
    tell_places(run);
}

/* A large result leaves from where its outputs came to, or it must be gone from there. */
static struct found search_beside_a_result(struct run *run, enum isolation_choice isolation) {
    run->settings.batch.isolation = isolation;
    run->settings.lanes = run->settings.lane_depth = 1; /* one after the other */
    run->broker.settle_ns = 300000000;                  /* the search has long run by then */
    run->on_poll = tell_places_of_outputs;
    add_large(run, 0, "");
    add_search(run, 0)->comes_after = SIZE_MAX;
    return run_searches(run, 1);
}

TEST(nothing_of_a_result_that_is_on_its_way_is_found) {
    assert_nothing_found(search_beside_a_result(*state, ISOLATE_KEY));
}

TEST(without_isolation_a_result_that_is_on_its_way_is_found) {
    struct found found = search_beside_a_result(*state, ISOLATE_NONE);
    assert_true(found.pinned >= LARGE_BYTES / 8);
}

/* A static is its holders': it is there until it is evicted, and then nowhere. */
static struct found search_after_a_static(struct run *run, enum isolation_choice isolation) {
    char yaml[4096];
    run->settings.batch.isolation = isolation;
    run->settings.statics.budget_bytes = 1; /* none stays behind its job */
    snprintf(yaml, sizeof yaml,
        "id: owner\nbuffers:\n"
        "  from: {bytes: %d, static: 'sha256:%s', data: {hex: '%s'}}\n"
        "  to: {bytes: 8}\n"
        "steps: [{program: keeper, entry: keep_static, args: [from, to, {u64: 0}, {u32: 1}], "
        "elements: 1}]\noutputs: [{buffer: to}]\n",
        SECRET_WORDS * 8, "6cc040dfe4c5bfb73979d6ae254819efba074d155043716bf952bbdb42bfd115",
        secret_hex());
    run_add_keyed(run, "owner", yaml);
    add_search(run, 0)->comes_last = true;
    return run_searches(run, 1);
}

TEST(nothing_of_a_static_that_has_left_is_found) {
    assert_nothing_found(search_after_a_static(*state, ISOLATE_KEY));
}

TEST(without_isolation_a_static_that_has_left_is_found) {
    struct found found = search_after_a_static(*state, ISOLATE_NONE);
    assert_true(found.device > 0);
    assert_true(found.pinned > 0);
}

#define SEARCH(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

RUN_TESTS(SEARCH(nothing_of_another_key_is_found), SEARCH(nothing_of_another_program_is_found),
    SEARCH(without_isolation_secrets_are_found_on_the_device_and_pinned),
    SEARCH(nothing_of_a_result_that_is_on_its_way_is_found),
    SEARCH(without_isolation_a_result_that_is_on_its_way_is_found),
    SEARCH(nothing_of_a_static_that_has_left_is_found),
    SEARCH(without_isolation_a_static_that_has_left_is_found))

/*
 * Whatever numbers and shapes a job sends: where its plan is accepted, the kernel stays inside its
 * buffers and its shared memory. Each lies flush against pages that nobody may touch, once with its
 * end and once with its start, so that a read outside is seen as well as a write.
 *
 * GPU_WORKER_TEST_ROUNDS says how many jobs of each entry (500).
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu_driver/launch.h"
#include "plan/launch.h"
#include "testing.h"

enum {
    ROUNDS = 500,
    TRIES_MAX = 20, /* for each of them */
    PAGE = 4096,
    ARENA = 16 * PAGE, /* what may be touched of an arena */
    SHARED_MAX = ARENA,
    SHARED_ALIGNMENT = 16, /* of its beginning: kernel_cpu.h */
    ELEMENTS_MAX = 24,
/* Larger grids are planned, but not run. The thread sanitizer maps some ten pieces of memory
 * for each thread of a cooperative grid, and a process may have 65,530. */
#ifdef __SANITIZE_THREAD__
    THREADS_RUN_MAX = 1 << 12,
#else
    THREADS_RUN_MAX = 1 << 14,
#endif
    ROWS = 3 /* jobs of a batched launch */
};

static const struct gpu_limits limits = {.architecture = 90,
    .memory_bytes = 1ull << 34,
    .block_threads_max = 1024,
    .block_max = {1024, 1024, 64},
    .grid_max = {2147483647, 65535, 65535},
    .param_bytes_max = 4096,
    .shared_bytes_max = SHARED_MAX,
    .cooperative = true};

/* ---- what is at random ---- */

static uint64_t random_state;

static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t below(uint64_t end) {
    return random_bits() % end;
}

static bool happens(unsigned percent) {
    return below(100) < percent;
}

/* ---- memory between pages that nobody may touch ---- */

struct arena_between {
    uint8_t *start; /* ARENA bytes */
};

static struct arena_between arena_create(void) {
    uint8_t *all = mmap(NULL, ARENA + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + PAGE, ARENA, PROT_READ | PROT_WRITE), 0);
    return (struct arena_between){all + PAGE};
}

static uint8_t *place(const struct arena_between *arena, size_t bytes, bool at_end) {
    return at_end ? arena->start + ARENA - bytes : arena->start;
}

/* ---- one job ---- */

struct trial {
    struct job job;
    struct job_step step;
    struct job_buffer buffers[ENTRY_ARGS_MAX];
    struct job_arg args[ENTRY_ARGS_MAX];
    uint32_t words[ENTRY_ARGS_MAX][8];
    struct plan_launch launch;
};

static struct arena_between arenas[ENTRY_ARGS_MAX], shared_arena, rows_arena;
static struct cpu_engine ordinary_engine, cooperative_engine;
static char what_runs[200];

static void on_segv(int signal_number) {
    static const char text[] = "touched what is not its own: ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, what_runs, strlen(what_runs));
    _exit(1);
}

/* Near what buffers have, or far from it. */
static uint64_t hostile_number(const struct trial *trial) {
    static const uint64_t extremes[] = {UINT32_MAX, UINT64_MAX, 1ull << 31, 1ull << 32, 1ull << 63,
        (1ull << 63) - 1, (1ull << 30) + 1, UINT32_MAX - 1023, UINT64_MAX - 7};
    if (happens(50)) return below(6);
    if (happens(70) && trial->job.buffer_count > 0)
        return trial->buffers[below(trial->job.buffer_count)].bytes / (1u << below(4)) + below(3) -
               1;
    return happens(50) ? random_bits() : extremes[below(sizeof extremes / sizeof extremes[0])];
}

static void make_buffer(struct trial *trial, const struct entry_arg *arg, struct job_arg *ret) {
    bool is_static = arg->role == ROLE_STATIC;
    size_t index = trial->job.buffer_count;
    for (size_t i = 0; i < trial->job.buffer_count; i++)
        if (happens(15) && (trial->buffers[i].source == BUFFER_STATIC) == is_static) index = i;
    if (index == trial->job.buffer_count) {
        size_t element = arg->element_type == DATATYPE_NONE ? 1 : datatype_bytes(arg->element_type);
        trial->buffers[trial->job.buffer_count++] = (struct job_buffer){.name = slice_of_text("b"),
            .source = is_static ? BUFFER_STATIC : BUFFER_FILL,
            .bytes = below(ELEMENTS_MAX) * element};
    }
    *ret = (struct job_arg){.kind = ARG_BUFFER, .buffer = index};
}

static void make_value(struct trial *trial, const struct entry_arg *arg, size_t index) {
    struct job_arg *ret = &trial->args[index];
    *ret = (struct job_arg){.kind = arg->value_kind, .bits = hostile_number(trial)};
    if (arg->value_kind != ARG_WORDS) {
        bool is_narrow = ret->kind == ARG_U32 || ret->kind == ARG_I32 || ret->kind == ARG_F32;
        if (is_narrow) ret->bits = (uint32_t)ret->bits;
        return;
    }
    ret->word_count = arg->word_count;
    ret->words = trial->words[index];
    for (size_t i = 0; i < arg->word_count; i++)
        trial->words[index][i] = (uint32_t)hostile_number(trial);
}

static void make_shape(struct job_step *step) {
    step->has_block = happens(70);
    for (int i = 0; i < 3; i++) {
        step->grid[i] = i > 0 && happens(80) ? 1 : (uint32_t)below(5) + 1;
        step->block[i] = i > 0 && happens(80) ? 1 : (uint32_t)below(40) + 1;
    }
    if (happens(5)) step->grid[0] = (uint32_t)below(1u << 31) + 1;
    if (happens(30)) step->elements = happens(5) ? random_bits() >> 34 : below(100) + 1;
    step->has_shared_bytes = happens(50);
    step->shared_bytes = (uint32_t)below(happens(50) ? 512 : SHARED_MAX);
    if (happens(80)) step->shared_bytes -= step->shared_bytes % SHARED_ALIGNMENT;
    step->cooperative = happens(5);
}

static void make_trial(
    struct trial *trial, const struct program *program, const struct entry *entry) {
    trial->job.buffer_count = 0;
    trial->step = (struct job_step){.program = slice_of_text(program->name),
        .entry = slice_of_text(entry->name),
        .arg_count = entry->arg_count,
        .args = trial->args,
        .iterations = 1};
    for (size_t i = 0; i < entry->arg_count; i++)
        if (entry->args[i].role != ROLE_VALUE) make_buffer(trial, &entry->args[i], &trial->args[i]);
    for (size_t i = 0; i < entry->arg_count; i++)
        if (entry->args[i].role == ROLE_VALUE) make_value(trial, &entry->args[i], i);
    make_shape(&trial->step);
    trial->job.buffers = trial->buffers;
    trial->job.steps = &trial->step;
    trial->job.step_count = 1;
    trial->launch = (struct plan_launch){.entry = NULL};
}

/* ---- running it ---- */

/* Small numbers lead somewhere, large ones outside. */
static void fill_at_random(uint8_t *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at++) {
        bool is_low = at % 4 == 0;
        data[at] = (uint8_t)(is_low ? below(ELEMENTS_MAX) : happens(85) ? 0 : random_bits());
    }
}

static void run_kernel(const struct kernel_info *kernel, const struct plan_launch *launch,
    const uint32_t grid[3], void *const *params, bool is_cooperative) {
    /* All blocks of a cooperative grid have shared memory at once, and their engine gives it. */
    struct cpu_engine *engine = is_cooperative ? &cooperative_engine : &ordinary_engine;
    size_t shared_bytes =
        (launch->shared_bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
    if (!is_cooperative) engine->shared = place(&shared_arena, shared_bytes, true);
    struct cpu_shape shape = {
        .shared_bytes = launch->shared_bytes, .is_cooperative = is_cooperative};
    memcpy(shape.grid, grid, sizeof shape.grid);
    memcpy(shape.block, launch->block, sizeof shape.block);
    struct cpu_launch *run = cpu_launch_create(kernel, NULL, &shape, params);
    assert_non_null(run);
    assert_int_equal(cpu_launch_run(run, engine), CUDA_SUCCESS);
    free(run);
}

static const struct kernel_info *find_kernel(void *object, const char *name) {
    char symbol[300];
    snprintf(symbol, sizeof symbol, "kernel_%s", name);
    const struct kernel_info *ret = dlsym(object, symbol);
    assert_non_null(ret);
    return ret;
}

static void place_params(struct trial *trial, bool at_end, uint64_t *values, void **params) {
    uint8_t *buffers[ENTRY_ARGS_MAX];
    for (size_t i = 0; i < trial->job.buffer_count; i++) {
        buffers[i] = place(&arenas[i], trial->buffers[i].bytes, at_end);
        fill_at_random(buffers[i], trial->buffers[i].bytes);
    }
    for (size_t i = 0; i < trial->step.arg_count; i++) {
        const struct job_arg *arg = &trial->args[i];
        values[i] = arg->bits;
        params[i] = &values[i];
        if (arg->kind == ARG_BUFFER) values[i] = (uintptr_t)buffers[arg->buffer];
        if (arg->kind == ARG_WORDS && trial->launch.entry->params_in_buffer)
            values[i] = (uintptr_t)arg->words;
        else if (arg->kind == ARG_WORDS) params[i] = (void *)(uintptr_t)arg->words;
    }
}

/* As batch/coalesce.h does it: grid.y counts the jobs, each of which has a row. */
static void run_batched(void *object, const struct trial *trial, const uint64_t *values) {
    const struct plan_launch *launch = &trial->launch;
    size_t row_bytes = 8 * trial->step.arg_count;
    if (launch->entry->batched == NULL || launch->grid[1] != 1) return;
    uint8_t *rows = place(&rows_arena, ROWS * row_bytes, true);
    for (size_t i = 0; i < ROWS; i++) memcpy(rows + i * row_bytes, values, row_bytes);
    uint32_t jobs = ROWS;
    const uint32_t grid[3] = {launch->grid[0], ROWS, launch->grid[2]};
    run_kernel(find_kernel(object, launch->entry->batched), launch, grid,
        (void *[]){(void *)&rows, &jobs}, false);
}

static void run_trial(void *object, struct trial *trial, bool at_end) {
    uint64_t values[ENTRY_ARGS_MAX];
    void *params[ENTRY_ARGS_MAX];
    const struct plan_launch *launch = &trial->launch;
    const struct entry *entry = launch->entry;
    place_params(trial, at_end, values, params);
    run_kernel(find_kernel(object, entry->name), launch, launch->grid, params, launch->cooperative);
    for (size_t i = 0; i < entry->phase_count; i++)
        run_kernel(find_kernel(object, launch->program->entries[entry->phases[i]].name), launch,
            launch->grid, params, false);
    run_batched(object, trial, values);
}

static bool can_be_run(const struct plan_launch *launch) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) threads *= (uint64_t)launch->grid[i] * launch->block[i];
    return threads <= THREADS_RUN_MAX;
}

/* ---- all of them ---- */

static void try_entry(const struct registry *registry, const struct program *program,
    const struct entry *entry, void *object) {
    static struct trial trial;
    const char *wanted = getenv("GPU_WORKER_TEST_ROUNDS");
    int rounds = wanted != NULL ? atoi(wanted) : ROUNDS, refused = 0, ran = 0;
    int most = TRIES_MAX * rounds; /* where many bounds let few through */
    for (int round = 0; round < rounds || (ran <= rounds / 100 && round < most); round++) {
        struct error err;
        random_state = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
        make_trial(&trial, program, entry);
        enum err code = plan_step(&trial.job, 0, registry, &limits, &trial.launch, &err);
        refused += code == ERR_BAD_ARGUMENT;
        if (code != ERR_OK || !can_be_run(&trial.launch)) continue;
        ran++;
        snprintf(
            what_runs, sizeof what_runs, "%s %s, round %d\n", program->name, entry->name, round);
        run_trial(object, &trial, true);
        run_trial(object, &trial, false);
    }
    print_message("%s %s: %d ran, %d refused\n", program->name, entry->name, ran, refused);
    assert_true(ran > rounds / 100);
    assert_true(entry->bound_count == 0 || refused > rounds / 100);
}

static void try_programs(const char *folder) {
    struct problems problems;
    problems_init(&problems);
    signal(SIGSEGV, on_segv); /* cmocka's says nothing of the job */
    struct registry *registry = registry_load(folder, &problems);
    problems_print(&problems, folder);
    assert_false(problems_any(&problems));
    for (size_t i = 0; i < registry_count(registry); i++) {
        const struct program *program = registry_at(registry, i);
        char path[1000];
        snprintf(path, sizeof path, "%s/%s/%s.so", folder, program->name, program->name);
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (object == NULL) fail_msg("%s", dlerror());
        for (size_t k = 0; k < program->entry_count; k++)
            try_entry(registry, program, &program->entries[k], object);
        dlclose(object);
    }
    registry_destroy(registry);
    problems_fini(&problems);
}

static int set_up(void **state) {
    for (size_t i = 0; i < ENTRY_ARGS_MAX; i++) arenas[i] = arena_create();
    shared_arena = arena_create();
    rows_arena = arena_create();
    cpu_engine_init(&ordinary_engine);
    cpu_engine_init(&cooperative_engine);
    ordinary_engine.shared_bytes = SIZE_MAX; /* it is not to be had anew */
    return 0;
}

static int tear_down(void **state) {
    ordinary_engine.shared = NULL;
    cpu_engine_fini(&ordinary_engine);
    cpu_engine_fini(&cooperative_engine);
    return 0;
}

TEST(no_numbers_lead_a_shipped_program_outside_of_its_buffers) {
    try_programs(GPU_WORKER_PROGRAMS_DIR);
}

TEST(no_numbers_lead_the_differential_program_outside_of_its_buffers) {
    try_programs(MIX_FOLDER);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_numbers_lead_a_shipped_program_outside_of_its_buffers),
        cmocka_unit_test(no_numbers_lead_the_differential_program_outside_of_its_buffers)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

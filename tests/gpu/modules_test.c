/* Proves: null handles from the driver; the cache of modules. */
#include "gpu/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cpu_device.h"
#include "support/scratch.h"

enum { PROGRAMS = 6, THREADS = 8, ROUNDS = 80, KEPT = 4 /* two of them loaded at start */ };

static char *root;
static struct registry *registry;
static struct device device;
static struct modules *modules;
static struct module_set *set;
static struct error err;

static void write_file(const char *name, const char *file, const void *bytes, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", root, name, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

static void write_program(const char *name, const void *image, size_t bytes) {
    char text[400];
    snprintf(text, sizeof text,
        "name: %s\nentries: [{name: saxpy, args: [{name: a, value: f32}, {name: x, buffer: in}, "
        "{name: y, buffer: inout}, {name: n, value: u32}]}]\nimages: [{kind: cpu, file: k.so}]\n",
        name);
    write_file(name, "program.yaml", text, strlen(text));
    write_file(name, "k.so", image, bytes);
}

/* p0 to p5, alike; "text", whose image is none, and "other", whose image has no such kernel. */
static int set_up(void **state) {
    root = scratch_create();
    char *image;
    size_t bytes;
    assert_int_equal(
        file_read(GPU_WORKER_PROGRAMS_DIR "/saxpy/saxpy.so", 1 << 20, &image, &bytes, &err),
        ERR_OK);
    for (int i = 0; i < PROGRAMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        write_program(name, image, bytes);
    }
    write_program("other", image, bytes);
    write_program("text", "no image", 8);
    free(image);
    struct problems problems;
    problems_init(&problems);
    registry = registry_load(root, &problems);
    assert_int_equal(problems.count, 0);
    problems_fini(&problems);
    /* the registry would have seen that */
    registry_find(registry, slice_of_text("other"))->entries[0].symbol = (char *)"no_such_kernel";
    return 0;
}

static int tear_down(void **state) {
    registry_destroy(registry);
    scratch_remove(root);
    return 0;
}

static void start(const char *faults, size_t count_max) {
    cpu_device_open(&device, faults);
    assert_int_equal(modules_create(&device, count_max, &modules, &err), ERR_OK);
    assert_int_equal(module_set_load(modules, registry, NULL, &set, &err), ERR_OK);
}

static int stop(void **state) {
    module_set_unload(set);
    set = NULL;
    modules_destroy(modules);
    modules = NULL;
    assert_int_equal(cpu_driver_counters().modules_live, 0);
    assert_int_equal(cpu_driver_counters().freed_in_use, 0);
    device_close(&device);
    return cpu_device_reset(state);
}

static const struct program *program(const char *name) {
    return registry_find(registry, slice_of_text(name));
}

static struct module *get(const char *name) {
    struct module *module;
    if (modules_get(set, program(name), NULL, &module, &err) != ERR_OK) fail_msg("%s", err.message);
    return module;
}

static enum err use(const struct module *module, const char *name) {
    const struct kernel *kernel = NULL;
    enum err code = module_kernel(module, &program(name)->entries[0], &kernel, &err);
    if (code == ERR_OK) assert_non_null(kernel->function);
    return code;
}

TEST(modules_of_all_programs_are_loaded_at_start) {
    start(NULL, MODULES_MAX);
    assert_int_equal(modules_read_counts(modules).compilations, registry_count(registry));
    struct module *module = modules_find(set, program("p3"), NULL);
    assert_non_null(module);
    assert_int_equal(use(module, "p3"), ERR_OK);
    assert_ptr_equal(get("p3"), module);
    assert_int_equal(modules_read_counts(modules).compilations, registry_count(registry));
    assert_int_equal(modules_read_counts(modules).hits, 2);
}

TEST(modules_of_programs_that_two_registries_share_are_loaded_once) {
    start(NULL, MODULES_MAX);
    struct problems problems;
    struct module_set *later;
    problems_init(&problems);
    write_file("p3", "k.so", "changed", 7); /* no image, which the driver will say */
    struct registry *again = registry_load_again(root, registry, &problems);
    problems_fini(&problems);
    uint64_t before = modules_read_counts(modules).compilations;
    assert_int_equal(module_set_load(modules, again, set, &later, &err), ERR_OK);
    const struct program *p2 = registry_find(again, slice_of_text("p2"));
    assert_true(program_is_same(p2, program("p2")));
    assert_ptr_equal(modules_find(later, p2, NULL), get("p2"));
    assert_int_equal(modules_read_counts(modules).compilations,
        before + registry_count(again) - registry_count(registry) + 1);
    size_t live = cpu_driver_counters().modules_live;
    module_set_unload(later);
    registry_destroy(again);
    assert_int_equal(use(get("p2"), "p2"), ERR_OK);
    assert_true(cpu_driver_counters().modules_live <= live);
}

TEST(modules_serve_a_job_that_pins_what_is_loaded) {
    start(NULL, MODULES_MAX);
    struct module *module = modules_find(set, program("p3"), NULL);
    const struct digest *pinned = &program("p3")->images[0].digest;
    assert_ptr_equal(modules_find(set, program("p3"), pinned), module);
    const struct digest other = {{1}};
    assert_null(modules_find(set, program("p3"), &other));
    assert_int_equal(modules_get(set, program("p3"), &other, &module, &err), ERR_UNSUPPORTED);
}

TEST(modules_give_the_compilers_log_and_compile_what_it_rejects_once) {
    start(NULL, 2);
    for (int i = 0; i < 3; i++) {
        struct module *module = get("text");
        assert_int_equal(use(module, "text"), ERR_MODULE_REJECTED);
        assert_non_null(strstr(err.message, "not a shared object"));
        module_unref(module);
    }
    assert_int_equal(modules_read_counts(modules).compilations, 2); /* one of them at start */
    struct module *module = get("other");
    assert_int_equal(use(module, "other"), ERR_MODULE_REJECTED);
    assert_non_null(strstr(err.message, "no_such_kernel"));
    module_unref(module);
}

static void assert_rejected(const char *name, const char *message) {
    struct module *module = get(name);
    enum err code = use(module, name);
    module_unref(module);
    assert_int_equal(code, ERR_MODULE_REJECTED);
    assert_string_equal(err.message, message);
}

TEST(modules_ask_the_driver_what_kernels_take) {
    start(NULL, 4);
    struct entry *wide = program("p3")->entries, *few = program("p4")->entries;
    struct entry *batched = program("p5")->entries;
    wide->args[0].value_kind = ARG_F64;
    few->arg_count = 3;
    batched->batched = batched->name;
    assert_rejected("p3", "program.yaml:2:32: argument 'a' has 8 bytes, but parameter 1 of kernel "
                          "'saxpy' of the image has 4");
    assert_rejected("p4",
        "program.yaml: kernel 'saxpy' must take 3 parameters, but the image's kernel takes more");
    assert_rejected("p5", "program.yaml: parameter 1 of a batched kernel has 8 bytes, but "
                          "parameter 1 of kernel 'saxpy' of the "
                          "image has 4");
    wide->args[0].value_kind = ARG_F32;
    few->arg_count = 4;
    batched->batched = NULL;
}

TEST(modules_believe_what_a_driver_cannot_say) {
    start("cuFuncGetParamInfo:not_supported@*", MODULES_MAX);
    assert_int_equal(use(get("p0"), "p0"), ERR_OK);
}

TEST(modules_evict_what_was_not_used_for_longest) {
    start(NULL, KEPT);
    assert_null(modules_find(set, program("p2"), NULL));
    module_unref(get("p2"));
    module_unref(get("p3"));
    module_unref(modules_find(set, program("p2"), NULL));
    module_unref(get("p4")); /* in the place of p3 */
    assert_int_equal(modules_read_counts(modules).evictions, 1);
    assert_int_equal(cpu_driver_counters().modules_live, KEPT - 1); /* "other" has none */
    assert_null(modules_find(set, program("p3"), NULL));
    struct module *module = modules_find(set, program("p2"), NULL);
    assert_int_equal(use(module, "p2"), ERR_OK);
    module_unref(module);
}

TEST(modules_in_use_are_never_evicted) {
    start(NULL, KEPT);
    struct module *second = get("p2"), *third = get("p3"), *fourth;
    assert_int_equal(modules_get(set, program("p4"), NULL, &fourth, &err), ERR_DEVICE_MEMORY);
    module_unref(third);
    fourth = get("p4");
    assert_int_equal(use(second, "p2"), ERR_OK);
    assert_int_equal(use(fourth, "p4"), ERR_OK);
    assert_ptr_equal(get("p2"), second);
    module_unref(second);
    module_unref(second);
    module_unref(fourth);
}

TEST(modules_that_are_held_stay_loaded_when_others_have_their_place) {
    start(NULL, KEPT);
    struct module *held = get("p2");
    module_hold(held);
    module_unref(held);
    module_unref(get("p3"));
    module_unref(get("p4")); /* in the place of p2 */
    assert_int_equal(modules_read_counts(modules).evictions, 1);
    assert_null(modules_find(set, program("p2"), NULL));
    assert_int_equal(cpu_driver_counters().modules_live, KEPT); /* "other" has none */
    module_release(held);
    assert_int_equal(cpu_driver_counters().modules_live, KEPT - 1);
}

TEST(modules_whose_load_fails_in_passing_are_loaded_by_the_next_one) {
    /* "other" is loaded at start, up to its first function; the next calls are p0's. */
    static const char *const faults[] = {
        "cuModuleLoadDataEx:out_of_memory@2",
        "cuModuleLoadDataEx:null@2",
        "cuModuleGetFunction:invalid_value@2",
        "cuModuleGetFunction:null@2",
        "cuFuncGetAttribute:invalid_value@2",
        "cuFuncSetAttribute:out_of_memory@1",
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct module *module;
        start(faults[i], 2);
        enum err code = modules_get(set, program("p0"), NULL, &module, &err);
        assert_true(code == ERR_DRIVER || code == ERR_DEVICE_MEMORY);
        assert_int_equal(cpu_driver_counters().modules_live, 0);
        module = get("p0");
        assert_int_equal(use(module, "p0"), ERR_OK);
        module_unref(module);
        stop(NULL);
    }
}

TEST(modules_that_could_not_be_loaded_at_start_are_loaded_when_asked_for) {
    start("cuModuleLoadDataEx:out_of_memory@2", MODULES_MAX);
    assert_null(modules_find(set, program("p0"), NULL));
    struct module *module = get("p0");
    assert_int_equal(use(module, "p0"), ERR_OK);
    module_unref(module);
}

/* A set of the same programs takes the place of the one before. */
static void reload(void) {
    struct module_set *next;
    assert_int_equal(module_set_load(modules, registry, set, &next, &err), ERR_OK);
    module_set_unload(set);
    set = next;
}

TEST(modules_that_an_earlier_set_could_not_load_are_loaded_with_the_next) {
    start("cuModuleLoadDataEx:out_of_memory@2", MODULES_MAX);
    assert_null(modules_find(set, program("p0"), NULL));
    reload();
    struct module *module = modules_find(set, program("p0"), NULL);
    assert_non_null(module);
    assert_int_equal(use(module, "p0"), ERR_OK);
    module_unref(module);
}

TEST(modules_loaded_when_asked_for_are_kept_like_those_loaded_at_start) {
    start("cuModuleLoadDataEx:out_of_memory@2", MODULES_MAX);
    struct module *module = get("p0");
    module_unref(module);
    uint64_t compilations = modules_read_counts(modules).compilations;
    reload();
    assert_ptr_equal(modules_find(set, program("p0"), NULL), module);
    assert_int_equal(use(module, "p0"), ERR_OK);
    module_unref(module);
    assert_int_equal(modules_read_counts(modules).compilations, compilations);
}

TEST(modules_that_lose_the_gpu_say_so) {
    struct module *module;
    start("cuModuleLoadDataEx:illegal_address@2", 2);
    assert_int_equal(modules_get(set, program("p0"), NULL, &module, &err), ERR_GPU_ILLEGAL_ADDRESS);
}

/* ---- many threads ---- */

static pthread_barrier_t barrier;
static atomic_uint refusals, failures;

/* Asks for the last four programs again and again, ten times each. */
static void *ask(void *context) {
    struct error thread_error;
    pthread_barrier_wait(&barrier);
    if (device_bind(&device, &thread_error) != ERR_OK) atomic_fetch_add(&failures, 1);
    for (size_t i = 0; i < ROUNDS; i++) {
        const struct program *wanted =
            registry_at(registry, registry_count(registry) - 1 - i / 10 % 4);
        struct module *module = NULL;
        enum err code = modules_get(set, wanted, NULL, &module, &thread_error);
        if (code == ERR_DEVICE_MEMORY) atomic_fetch_add(&refusals, 1);
        else if (code != ERR_OK) atomic_fetch_add(&failures, 1);
        module_unref(module);
    }
    return NULL;
}

static void ask_at_once(const char *faults, size_t count_max) {
    pthread_t threads[THREADS];
    atomic_store(&refusals, 0);
    atomic_store(&failures, 0);
    start(faults, count_max);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ask, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(atomic_load(&failures), 0);
}

TEST(modules_that_many_ask_for_at_once_are_compiled_once) {
    ask_at_once("cuModuleLoadDataEx:slow=1ms@*", 8);
    struct modules_counts counts = modules_read_counts(modules);
    assert_int_equal(atomic_load(&refusals), 0);
    assert_int_equal(counts.compilations, 4 + 4);
    assert_int_equal(counts.hits, THREADS * ROUNDS - 4);
    assert_int_equal(counts.evictions, 0);
}

TEST(modules_that_many_ask_for_at_once_are_kept_once) {
    ask_at_once("cuModuleLoadDataEx:out_of_memory@5;cuModuleLoadDataEx:out_of_memory@6;"
                "cuModuleLoadDataEx:out_of_memory@7;cuModuleLoadDataEx:slow=1ms@*",
        MODULES_MAX);
    struct modules_counts counts = modules_read_counts(modules);
    assert_int_equal(atomic_load(&refusals), 0);
    assert_int_equal(counts.compilations, 8 + 3);
    assert_int_equal(counts.hits, THREADS * ROUNDS - 3);
    reload();
    assert_int_equal(modules_read_counts(modules).compilations, 8 + 3);
}

TEST(modules_come_and_go_under_many_threads) {
    ask_at_once("cuModuleLoadDataEx:slow=1ms@*", 4);
    struct modules_counts counts = modules_read_counts(modules);
    assert_true(counts.evictions > 0);
    assert_int_equal(counts.compilations, 2 + 2 + counts.evictions);
    assert_int_equal(
        counts.hits + counts.compilations - 2 + atomic_load(&refusals), THREADS * ROUNDS);
    assert_true(cpu_driver_counters().modules_live <= 4);
}

#define M(name) cmocka_unit_test_teardown(name, stop)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        M(modules_of_all_programs_are_loaded_at_start),
        M(modules_of_programs_that_two_registries_share_are_loaded_once),
        M(modules_serve_a_job_that_pins_what_is_loaded),
        M(modules_give_the_compilers_log_and_compile_what_it_rejects_once),
        M(modules_ask_the_driver_what_kernels_take),
        M(modules_believe_what_a_driver_cannot_say),
        M(modules_evict_what_was_not_used_for_longest),
        M(modules_in_use_are_never_evicted),
        M(modules_that_are_held_stay_loaded_when_others_have_their_place),
        M(modules_whose_load_fails_in_passing_are_loaded_by_the_next_one),
        M(modules_that_could_not_be_loaded_at_start_are_loaded_when_asked_for),
        M(modules_that_an_earlier_set_could_not_load_are_loaded_with_the_next),
        M(modules_loaded_when_asked_for_are_kept_like_those_loaded_at_start),
        M(modules_that_lose_the_gpu_say_so),
        M(modules_that_many_ask_for_at_once_are_compiled_once),
        M(modules_that_many_ask_for_at_once_are_kept_once),
        M(modules_come_and_go_under_many_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

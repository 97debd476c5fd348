/* Optimizers as kernels: the bits of a search, whatever runs beside it. optimizers_test.py says
 * whether they are the right ones. */
#include <math.h>
#include <string.h>

#include "rig.h"

enum { DIMENSION = 5, SAMPLES = 12, POINTS = SAMPLES * (DIMENSION + 1) };
enum { BUFFERS = 7, NUMBERS = 10, ARGS = 16, WORDS_MAX = 256, SEARCHES = 5 };

struct numbers {
    uint32_t objective, dimension, samples;
    uint64_t seed;
    float of_program[2], low, high, target;
    uint32_t window;
};

struct program {
    const char *name, *batched;
    uint32_t words[BUFFERS]; /* of each buffer; the last is `done` */
    size_t buffers, of_program;
    struct numbers numbers;
};

static const struct program sep_cma_es = {.name = "sep_cma_es",
    .batched = "sep_cma_es_batched",
    .words = {4 * DIMENSION + 1, POINTS, SAMPLES *DIMENSION, DIMENSION, 1, 3, 1},
    .buffers = 7,
    .of_program = 1,
    .numbers = {2, DIMENSION, SAMPLES, 1, {1.0f, 0.0f}, -3.0f, 3.0f, -1.0f, 0}};

static const struct program evolution = {.name = "differential_evolution",
    .batched = "differential_evolution_batched",
    .words = {POINTS, POINTS, DIMENSION, 1, 3, 1},
    .buffers = 6,
    .of_program = 2,
    .numbers = {2, DIMENSION, SAMPLES, 1, {0.5f, 0.9f}, -3.0f, 3.0f, -1.0f, 0}};

enum { PROGRAMS = 2 };
static const struct program *const programs[PROGRAMS] = {&sep_cma_es, &evolution};

struct search {
    CUdeviceptr buffers[BUFFERS];
    struct numbers numbers;
};

/** All bytes that a search has, one buffer behind the other. */
struct image {
    uint32_t words[WORDS_MAX];
};

static struct search start(const struct program *program, uint64_t seed) {
    struct search search = {.numbers = program->numbers};
    search.numbers.seed = seed;
    for (size_t i = 0; i < program->buffers; i++)
        search.buffers[i] = rig_buffer(NULL, program->words[i] * sizeof(uint32_t));
    return search;
}

static struct image read(const struct program *program, const struct search *search) {
    struct image image = {{0}};
    size_t at = 0;
    for (size_t i = 0; i < program->buffers; i++) {
        assert_in_range(at + program->words[i], 0, WORDS_MAX);
        rig_read(search->buffers[i], image.words + at, program->words[i] * sizeof(uint32_t));
        at += program->words[i];
    }
    return image;
}

/** Pointers to the arguments' values, in their order. */
static void list_args(const struct program *program, struct search *search, void *args[ARGS]) {
    struct numbers *numbers = &search->numbers;
    size_t count = 0;
    for (size_t i = 0; i < program->buffers; i++) args[count++] = &search->buffers[i];
    void *const first[] = {
        &numbers->objective, &numbers->dimension, &numbers->samples, &numbers->seed};
    void *const last[] = {&numbers->low, &numbers->high, &numbers->target, &numbers->window};
    for (size_t i = 0; i < 4; i++) args[count++] = first[i];
    for (size_t i = 0; i < program->of_program; i++) args[count++] = &numbers->of_program[i];
    for (size_t i = 0; i < 4; i++) args[count++] = last[i];
    assert_int_equal(ARGS, count);
}

static void run(
    const struct program *program, struct search *search, uint32_t block, uint32_t rounds) {
    void *args[ARGS];
    list_args(program, search, args);
    rig_launch(rig_kernel(PROGRAMS_FOLDER, program->name, program->name),
        (struct rig_shape){.grid = 1, .block = block, .shared_bytes = 4096, .iterations = rounds},
        args);
}

/** Rounds of several searches in shared launches, which have one block row more than searches. */
static void run_together(
    const struct program *program, struct search *searches, uint32_t count, uint32_t rounds) {
    uint64_t table[SEARCHES][ARGS] = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        void *args[ARGS];
        list_args(program, &searches[i], args);
        for (size_t j = 0; j < ARGS; j++) {
            bool is_wide = j < program->buffers || args[j] == (void *)&searches[i].numbers.seed;
            memcpy(&table[i][j], args[j], is_wide ? 8 : 4);
        }
    }
    CUdeviceptr rows = rig_buffer(table, sizeof table);
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, program->name, program->batched);
    for (uint32_t i = 0; i < rounds; i++)
        rig_launch_3d(kernel, (uint32_t[]){1, count + 1, 1}, (uint32_t[]){64, 1, 1}, 4096,
            (void *[]){&rows, &count});
}

static uint32_t done_of(const struct program *program, const struct search *search) {
    uint32_t done;
    rig_read(search->buffers[program->buffers - 1], &done, sizeof done);
    return done;
}

TEST(a_search_has_the_same_bits_with_any_block) {
    static const uint32_t blocks[] = {1, 32, 100, 256, 1024};
    for (size_t p = 0; p < PROGRAMS; p++) {
        const struct program *program = programs[p];
        struct search search = start(program, 1);
        run(program, &search, 64, 30);
        struct image expected = read(program, &search);
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            search = start(program, 1);
            run(program, &search, blocks[i], 30);
            struct image image = read(program, &search);
            assert_memory_equal(&expected, &image, sizeof image);
        }
        rig_free_all();
    }
}

TEST(a_search_among_others_has_the_bits_that_it_has_alone) {
    for (size_t p = 0; p < PROGRAMS; p++) {
        const struct program *program = programs[p];
        struct search searches[SEARCHES];
        for (uint32_t i = 0; i < SEARCHES; i++) searches[i] = start(program, i);
        run_together(program, searches, SEARCHES, 13);
        run_together(program, searches + 1, 3, 7); /* the others are ahead of the first and last */
        struct image together[SEARCHES];
        for (uint32_t i = 0; i < SEARCHES; i++) together[i] = read(program, &searches[i]);
        rig_free_all();
        for (uint32_t i = 0; i < SEARCHES; i++) {
            struct search alone = start(program, i);
            run(program, &alone, 64, i >= 1 && i <= 3 ? 20 : 13);
            struct image image = read(program, &alone);
            assert_memory_equal(&together[i], &image, sizeof image);
        }
        rig_free_all();
    }
}

TEST(a_search_that_is_done_is_left_as_it_is) {
    for (size_t p = 0; p < PROGRAMS; p++) {
        const struct program *program = programs[p];
        struct search search = start(program, 1);
        search.numbers.window = 5;
        run(program, &search, 64, 2000);
        assert_in_range(done_of(program, &search), 6, 1999);
        struct image before = read(program, &search);
        run(program, &search, 64, 1);
        run_together(program, &search, 1, 1);
        struct image after = read(program, &search);
        assert_memory_equal(&before, &after, sizeof after);
        rig_free_all();
    }
}

TEST(what_ends_a_search_changes_nothing_else) {
    for (size_t p = 0; p < PROGRAMS; p++) {
        const struct program *program = programs[p];
        struct search ended = start(program, 1), other = start(program, 1);
        ended.numbers.target = 30.0f; /* soon reached */
        run(program, &ended, 64, 40);
        uint32_t done = done_of(program, &ended);
        assert_in_range(done, 1, 39);
        run(program, &other, 64, done);
        struct image expected = read(program, &other), image = read(program, &ended);
        assert_memory_equal(&expected, &image, program->words[0] * sizeof(uint32_t));
        rig_free_all();
    }
}

/** FNV-1a */
static uint64_t digest_of(const struct image *image) {
    uint64_t digest = 0xcbf29ce484222325;
    for (size_t i = 0; i < WORDS_MAX; i++) digest = (digest ^ image->words[i]) * 0x100000001b3;
    return digest;
}

/* Written down once on a CPU: other CPUs and GPUs have the same bits. The last is of a search that
 * NaN has ended. */
TEST(the_bits_are_the_same_on_every_device) {
    static const uint64_t digests[PROGRAMS][5] = {
        {0xcf88f7a26f83ee41, 0x4872eebf98867aa1, 0xf73060614f6061dc, 0xdf4b01beb4f53a64,
            0x01f98ffdfd9b36ca},
        {0x1111d73ad04f878f, 0xf22a686a252b65b0, 0x317f0be116799ff6, 0x93975b68d66ec8c0,
            0x73af70c9e48ffee4}};
    for (size_t i = 0; i < PROGRAMS; i++)
        for (uint32_t j = 0; j < 5; j++) {
            struct search search = start(programs[i], 7);
            search.numbers.objective = j % 4;
            if (j == 4) search.numbers.high = NAN;
            run(programs[i], &search, 64, 50);
            struct image image = read(programs[i], &search);
            assert_true(digest_of(&image) == digests[i][j]);
            rig_free_all();
        }
}

RUN_RIG_TESTS(T(a_search_has_the_same_bits_with_any_block),
    T(a_search_among_others_has_the_bits_that_it_has_alone),
    T(a_search_that_is_done_is_left_as_it_is), T(what_ends_a_search_changes_nothing_else),
    T(the_bits_are_the_same_on_every_device))

#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "testing.h"

TEST(memory_is_zeroed_aligned_and_apart) {
    struct arena arena;
    arena_init(&arena, 1 << 20);
    uint8_t *last = NULL;
    for (size_t size = 1; size < 300; size++) {
        uint8_t *block = arena_alloc(&arena, 1, size);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(block[i], 0);
        memset(block, 0xff, size);
        assert_ptr_not_equal(block, last);
        last = block;
    }
    arena_fini(&arena);
}

TEST(more_than_a_chunk_fits_into_one_block) {
    struct arena arena;
    arena_init(&arena, 1 << 20);
    uint8_t *block = arena_alloc(&arena, 100, 1000);
    assert_non_null(block);
    memset(block, 0xff, 100 * 1000);
    arena_fini(&arena);
}

TEST(the_ceiling_holds_whatever_is_asked) {
    struct arena arena;
    arena_init(&arena, 10000);
    assert_null(arena_alloc(&arena, 1, 10001));
    size_t got = 0;
    while (arena_alloc(&arena, 1, 64) != NULL) got += 64;
    assert_true(got <= 10000);
    assert_true(got >= 9000);
    assert_true(arena.reserved <= 10000);
    assert_null(arena_alloc(&arena, 1, 5000));
    arena_fini(&arena);
}

TEST(what_we_bound_ourselves_stands_beyond_the_ceiling_and_leaves_it_as_it_was) {
    struct arena arena;
    arena_init(&arena, 128);
    assert_non_null(arena_alloc(&arena, 1, 128));
    uint8_t *beyond = arena_alloc_beyond(&arena, 5000);
    assert_non_null(beyond);
    memset(beyond, 0xff, 5000);
    assert_null(arena_alloc(&arena, 1, 64));
    assert_null(arena_alloc_beyond(&arena, SIZE_MAX));
    arena_fini(&arena);
}

TEST(a_small_ceiling_is_used_to_its_end) {
    struct arena arena;
    arena_init(&arena, 128);
    assert_non_null(arena_alloc(&arena, 1, 128));
    assert_null(arena_alloc(&arena, 1, 1));
    arena_fini(&arena);
}

TEST(a_count_that_overflows_is_refused) {
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    assert_null(arena_alloc(&arena, SIZE_MAX / 2 + 1, 2));
    assert_null(arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8, 1));
    arena_fini(&arena);
}

TEST(nothing_is_a_pointer_all_the_same) {
    struct arena arena;
    arena_init(&arena, 0);
    assert_non_null(arena_alloc(&arena, 0, 8));
    assert_non_null(arena_alloc(&arena, 8, 0));
    assert_null(arena_alloc(&arena, 1, 1));
    arena_fini(&arena);
}

TEST(an_emptied_arena_can_be_used_again) {
    struct arena arena;
    arena_init(&arena, 8192);
    assert_non_null(arena_alloc(&arena, 1, 8000));
    arena_fini(&arena);
    assert_non_null(arena_alloc(&arena, 1, 8000));
    arena_fini(&arena);
    arena_fini(&arena);
}

TEST(memory_of_the_callers_is_used_first_and_counts) {
    _Alignas(max_align_t) uint8_t memory[1024];
    struct arena arena;
    arena_init_within(&arena, 1 << 20, memory, sizeof memory);
    assert_ptr_equal(arena_alloc(&arena, 1, 1000), memory);
    assert_int_equal(arena.reserved, 1008); /* rounded up */
    uint8_t *next = arena_alloc(&arena, 1, 100);
    assert_non_null(next);
    assert_true(next < memory || next >= memory + sizeof memory);
    assert_int_equal(arena.reserved, 1008 + 4096);
    arena_fini(&arena);
}

TEST(the_ceiling_holds_in_memory_of_the_callers_too) {
    _Alignas(max_align_t) uint8_t memory[1024];
    struct arena arena;
    arena_init_within(&arena, 512, memory, sizeof memory);
    assert_ptr_equal(arena_alloc(&arena, 1, 512), memory);
    assert_null(arena_alloc(&arena, 1, 1));
    assert_ptr_equal(arena_alloc_beyond(&arena, 512), memory + 512);
    arena_fini(&arena);
}

TEST(a_large_piece_leaves_what_is_left_of_a_chunk_in_use) {
    _Alignas(max_align_t) uint8_t memory[1024];
    struct arena arena;
    arena_init_within(&arena, 1 << 20, memory, sizeof memory);
    uint8_t *large = arena_alloc_beyond(&arena, 8000);
    assert_true(large < memory || large >= memory + sizeof memory);
    assert_ptr_equal(arena_alloc(&arena, 1, 512), memory);
    assert_ptr_equal(arena_alloc(&arena, 1, 512), memory + 512);
    assert_int_equal(arena.reserved, 8000 + 1024);
    memset(large, 0xff, 8000);
    memset(memory, 0xff, sizeof memory);
    arena_fini(&arena);
}

RUN_TESTS(T(memory_is_zeroed_aligned_and_apart), T(more_than_a_chunk_fits_into_one_block),
    T(the_ceiling_holds_whatever_is_asked),
    T(what_we_bound_ourselves_stands_beyond_the_ceiling_and_leaves_it_as_it_was),
    T(a_small_ceiling_is_used_to_its_end), T(a_count_that_overflows_is_refused),
    T(nothing_is_a_pointer_all_the_same), T(an_emptied_arena_can_be_used_again),
    T(memory_of_the_callers_is_used_first_and_counts),
    T(the_ceiling_holds_in_memory_of_the_callers_too),
    T(a_large_piece_leaves_what_is_left_of_a_chunk_in_use))

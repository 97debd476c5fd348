/* Proves: copies that stay in their pinned block. */
#include "gpu/pinned.h"

#include "testing.h"

enum { BYTES = 16 };

struct guarded {
    uint8_t before[BYTES], inside[BYTES], behind[BYTES];
};

static struct guarded fresh(void) {
    struct guarded memory;
    memset(&memory, 0x5a, sizeof memory);
    return memory;
}

static struct pinned_block block_of(struct guarded *memory) {
    return (struct pinned_block){.data = memory->inside, .bytes = BYTES};
}

TEST(a_copy_that_fits_moves_exactly_its_bytes) {
    struct guarded memory = fresh(), expected = fresh();
    struct pinned_block block = block_of(&memory);
    struct error err;
    assert_int_equal(ERR_OK, pinned_write(&block, 12, slice_of("abcd", 4), &err));
    memcpy(expected.inside + 12, "abcd", 4);
    assert_memory_equal(&memory, &expected, sizeof memory);
}

/* Beyond the end in every way: by size, by offset, and by sums that wrap to something small. */
static const size_t bad_ranges[][2] = {{0, BYTES + 1}, {BYTES, 1}, {BYTES + 1, 0}, {9, 8},
    {SIZE_MAX, 1}, {1, SIZE_MAX}, {SIZE_MAX - 3, 8}, {8, SIZE_MAX - 3}};

TEST(an_upload_that_is_not_inside_its_block_moves_nothing) {
    struct guarded memory = fresh(), expected = fresh();
    struct pinned_block block = block_of(&memory);
    static const uint8_t payload[2 * BYTES];
    for (size_t i = 0; i < sizeof bad_ranges / sizeof bad_ranges[0]; i++) {
        struct slice from = slice_of(payload, bad_ranges[i][1]);
        struct error err;
        assert_int_equal(ERR_INTERNAL, pinned_write(&block, bad_ranges[i][0], from, &err));
        assert_memory_equal(&memory, &expected, sizeof memory);
    }
}

TEST(the_error_gives_range_and_size) {
    struct guarded memory = fresh();
    struct pinned_block block = block_of(&memory);
    struct error err;
    assert_int_equal(ERR_INTERNAL, pinned_write(&block, 9, slice_of("12345678", 8), &err));
    assert_string_equal(
        "an upload of 8 bytes at offset 9 is not inside a pinned block of 16 bytes", err.message);
}

TEST(nothing_can_be_copied_anywhere_inside_and_to_an_empty_block) {
    struct guarded memory = fresh();
    struct pinned_block block = block_of(&memory), empty = {0};
    struct error err;
    assert_int_equal(ERR_OK, pinned_write(&block, BYTES, slice_of(NULL, 0), &err));
    assert_int_equal(ERR_OK, pinned_write(&empty, 0, slice_of(NULL, 0), &err));
    assert_int_equal(ERR_INTERNAL, pinned_write(&empty, 0, slice_of("x", 1), &err));
}

RUN_TESTS(T(a_copy_that_fits_moves_exactly_its_bytes),
    T(an_upload_that_is_not_inside_its_block_moves_nothing), T(the_error_gives_range_and_size),
    T(nothing_can_be_copied_anywhere_inside_and_to_an_empty_block))

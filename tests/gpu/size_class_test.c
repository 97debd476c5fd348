/* Proves: size classes. */
#include "gpu/size_class.h"

#include <string.h>

#include "testing.h"

#define MIB ((size_t)1 << 20)

static size_t rounded(size_t bytes) {
    size_t index;
    struct error err;
    assert_int_equal(ERR_OK, size_class_find(bytes, &index, &err));
    return size_class_bytes(index);
}

TEST(sizes_below_one_mebibyte_become_powers_of_two) {
    static const size_t sizes[][2] = {{1, 256}, {256, 256}, {257, 512}, {512, 512}, {513, 1024},
        {MIB / 2, MIB / 2}, {MIB / 2 + 1, MIB}, {MIB, MIB}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(rounded(sizes[i][0]), sizes[i][1]);
}

TEST(a_doubling_above_one_mebibyte_has_four_classes) {
    static const size_t quarters[][2] = {{4 * MIB + 1, 20}, {5 * MIB, 20}, {5 * MIB + 1, 24},
        {6 * MIB, 24}, {6 * MIB + 1, 28}, {7 * MIB, 28}, {7 * MIB + 1, 32}, {8 * MIB, 32}};
    for (size_t i = 0; i < sizeof quarters / sizeof quarters[0]; i++)
        assert_int_equal(rounded(quarters[i][0]), quarters[i][1] * MIB / 4);
}

TEST(every_class_is_its_own_rounding_and_larger_than_the_one_before) {
    for (size_t i = 0; i < SIZE_CLASS_COUNT; i++) {
        size_t index;
        struct error err;
        assert_int_equal(ERR_OK, size_class_find(size_class_bytes(i), &index, &err));
        assert_int_equal(index, i);
        if (i == 0) continue;
        assert_true(size_class_bytes(i) > size_class_bytes(i - 1));
        assert_int_equal(ERR_OK, size_class_find(size_class_bytes(i - 1) + 1, &index, &err));
        assert_int_equal(index, i);
    }
}

TEST(above_one_mebibyte_a_block_is_at_most_a_quarter_larger_than_asked) {
    for (size_t i = 0; i + 1 < SIZE_CLASS_COUNT; i++) {
        size_t worst = size_class_bytes(i) + 1; /* of the next class */
        if (worst > MIB) assert_true(rounded(worst) - worst <= worst / 4);
    }
}

TEST(a_size_beyond_the_classes_says_to_split_the_job) {
    static const size_t sizes[] = {((size_t)1 << 40) + 1, SIZE_MAX};
    for (size_t i = 0; i < 2; i++) {
        size_t index = 99;
        struct error err;
        assert_int_equal(ERR_TOO_LARGE, size_class_find(sizes[i], &index, &err));
        assert_int_equal(index, 99);
        assert_non_null(strstr(err.fix, "split the job"));
    }
    assert_true(rounded((size_t)1 << 40) == (size_t)1 << 40);
}

RUN_TESTS(T(sizes_below_one_mebibyte_become_powers_of_two),
    T(a_doubling_above_one_mebibyte_has_four_classes),
    T(every_class_is_its_own_rounding_and_larger_than_the_one_before),
    T(above_one_mebibyte_a_block_is_at_most_a_quarter_larger_than_asked),
    T(a_size_beyond_the_classes_says_to_split_the_job))

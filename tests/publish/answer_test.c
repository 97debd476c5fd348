/* The ladder of answers, step by step. */
#include "publish/answer.h"

#include "testing.h"

TEST(each_answer_is_followed_by_a_lesser_one_and_the_last_by_none) {
    const enum answer steps[] = {ANSWER_RESULT, ANSWER_ERROR, ANSWER_BARE_ERROR, ANSWER_LETTER,
        ANSWER_SHORT_LETTER, ANSWER_TINY_LETTER, ANSWER_COORDINATES, ANSWER_COUNT};
    for (size_t i = 0; steps[i] != ANSWER_COUNT; i++)
        assert_int_equal(answer_next(steps[i]), steps[i + 1]);
}

TEST(results_come_before_letters_and_only_letters_go_to_the_dead_letters) {
    for (enum answer answer = ANSWER_RESULT; answer < ANSWER_LETTER; answer++)
        assert_false(answer_is_letter(answer));
    for (enum answer answer = ANSWER_LETTER; answer < ANSWER_COUNT; answer++)
        assert_true(answer_is_letter(answer));
}

TEST(a_letter_has_all_then_16_kib_then_256_bytes_then_nothing_of_each_part) {
    assert_int_equal(answer_part_bytes_max(ANSWER_LETTER), SIZE_MAX);
    assert_int_equal(answer_part_bytes_max(ANSWER_SHORT_LETTER), 16384);
    assert_int_equal(answer_part_bytes_max(ANSWER_TINY_LETTER), 256);
    assert_int_equal(answer_part_bytes_max(ANSWER_COORDINATES), 0);
}

RUN_TESTS(T(each_answer_is_followed_by_a_lesser_one_and_the_last_by_none),
    T(results_come_before_letters_and_only_letters_go_to_the_dead_letters),
    T(a_letter_has_all_then_16_kib_then_256_bytes_then_nothing_of_each_part))

#include "base/problems.h"

#include <string.h>

#include "testing.h"

TEST(no_problem_is_ok) {
    struct problems problems;
    struct error err;
    problems_init(&problems);
    assert_false(problems_any(&problems));
    assert_int_equal(problems_check(&problems, &err), ERR_OK);
    problems_fini(&problems);
}

TEST(a_problem_has_its_place_its_cause_and_its_fix) {
    struct problems problems;
    struct error err;
    problems_init(&problems);
    problems_add(&problems, "a.yaml", 3, 5, "write it right", "key '%s'", "x");
    assert_string_equal(problems.items[0].where, "a.yaml:3:5");
    assert_string_equal(problems.items[0].what, "key 'x'");
    assert_string_equal(problems.items[0].fix, "write it right");
    assert_int_equal(problems_check(&problems, &err), ERR_CONFIG);
    assert_string_equal(err.message, "a.yaml:3:5: key 'x'");
    assert_string_equal(err.fix, "write it right");
    problems_fini(&problems);
}

TEST(check_says_how_many_more_there_are) {
    struct problems problems;
    struct error err;
    problems_init(&problems);
    for (int line = 0; line < 3; line++) problems_add(&problems, "a.yaml", line, 1, "", "bad");
    assert_string_equal(problems.items[0].where, "a.yaml");
    assert_int_equal(problems_check(&problems, &err), ERR_CONFIG);
    assert_string_equal(err.message, "a.yaml: bad (and 2 more problems)");
    problems_fini(&problems);
}

TEST(problems_beyond_the_bound_are_counted) {
    struct problems problems;
    problems_init(&problems);
    for (int i = 0; i < PROBLEMS_MAX + 7; i++) problems_add(&problems, "a", 1, 1, "", "bad");
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_int_equal(problems_total(&problems), PROBLEMS_MAX + 7);
    problems_fini(&problems);
}

TEST(a_problem_stays_one_line) {
    struct problems problems;
    problems_init(&problems);
    problems_add(&problems, "a\nb", 0, 0, "", "key '%s'", "x\ry\x1b[2J");
    assert_string_equal(problems.items[0].where, "a?b");
    assert_string_equal(problems.items[0].what, "key 'x?y?[2J'");
    problems_fini(&problems);
}

TEST(a_problem_is_text_where_a_name_is_cut_within_a_character) {
    struct problems problems;
    problems_init(&problems);
    problems_add(&problems, "a", 0, 0, "", "key '%.3s'", "k\xc3\xa9\xc3\xa9");
    problems_add(&problems, "a", 0, 0, "", "key '%.2s'", "k\xc3\xa9\xc3\xa9");
    assert_string_equal(problems.items[0].what, "key 'k\xc3\xa9'");
    assert_string_equal(problems.items[1].what, "key 'k?'");
    problems_fini(&problems);
}

RUN_TESTS(T(no_problem_is_ok), T(a_problem_has_its_place_its_cause_and_its_fix),
    T(check_says_how_many_more_there_are), T(problems_beyond_the_bound_are_counted),
    T(a_problem_stays_one_line), T(a_problem_is_text_where_a_name_is_cut_within_a_character))

#include "base/nearest.h"

#include <string.h>

#include "testing.h"

static const char *nearest_of(const char *word, const char *const *candidates) {
    struct nearest nearest;
    nearest_init(&nearest, word);
    for (; *candidates != NULL; candidates++) nearest_offer(&nearest, *candidates);
    return nearest.text;
}

static const char *const words[] = {"driver", "device", "lanes", "log", NULL};

TEST(a_slip_of_the_fingers_finds_its_word) {
    assert_string_equal(nearest_of("drivr", words), "driver");
    assert_string_equal(nearest_of("drvier", words), "driver");
    assert_string_equal(nearest_of("devices", words), "device");
    assert_string_equal(nearest_of("lane", words), "lanes");
    assert_string_equal(nearest_of("logs", words), "log");
}

TEST(the_nearest_of_several_wins) {
    const char *const near[] = {"abcdefxx", "abcdefgx", "abcdexxx", NULL};
    assert_string_equal(nearest_of("abcdefgh", near), "abcdefgx");
}

TEST(another_word_finds_nothing) {
    assert_null(nearest_of("kubernetes", words));
    assert_null(nearest_of("", words));
    assert_null(nearest_of("xyz", words));
}

TEST(a_very_long_word_finds_nothing) {
    char word[1000];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = 0;
    const char *const same[] = {word, "a", NULL};
    assert_null(nearest_of(word, same));
}

RUN_TESTS(T(a_slip_of_the_fingers_finds_its_word), T(the_nearest_of_several_wins),
    T(another_word_finds_nothing), T(a_very_long_word_finds_nothing))

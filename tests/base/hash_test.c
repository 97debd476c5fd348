#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing.h"

/* The example of the paper's appendix A: the key 00 .. 0f, the message 00 .. 0e. */
TEST(the_vector_of_the_paper_agrees) {
    const uint64_t key[] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    uint8_t message[15];
    for (uint8_t i = 0; i < sizeof message; i++) message[i] = i;
    assert_true(hash_with_key(key, slice_of(message, sizeof message)) == 0xa129ca6149be45e5u);
}

TEST(every_byte_and_the_length_count) {
    uint8_t bytes[24] = {0};
    uint64_t seen[sizeof bytes * 2 + 1];
    size_t count = 0;
    for (size_t size = 0; size <= sizeof bytes; size++)
        seen[count++] = hash_more(HASH_START, slice_of(bytes, size));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        seen[count++] = hash_more(HASH_START, slice_of(bytes, sizeof bytes));
        bytes[i] = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
}

TEST(what_came_before_counts) {
    uint64_t ab = hash_more(hash_more(HASH_START, slice_of_text("a")), slice_of_text("b"));
    uint64_t ba = hash_more(hash_more(HASH_START, slice_of_text("b")), slice_of_text("a"));
    assert_true(ab != ba);
    assert_true(
        hash_more(HASH_START, slice_of(NULL, 0)) == hash_more(HASH_START, slice_of_text("")));
}

RUN_TESTS(T(the_vector_of_the_paper_agrees), T(every_byte_and_the_length_count),
    T(what_came_before_counts))

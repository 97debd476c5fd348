#include "publish/answer.h"

#include <stdint.h>

static const struct {
    enum answer next;
    bool is_letter;
    size_t part_bytes_max;
} answers[] = {
    [ANSWER_RESULT] = {.next = ANSWER_ERROR},
    [ANSWER_ERROR] = {.next = ANSWER_BARE_ERROR},
    [ANSWER_BARE_ERROR] = {.next = ANSWER_LETTER},
    [ANSWER_LETTER] = {ANSWER_SHORT_LETTER, true, SIZE_MAX},
    [ANSWER_SHORT_LETTER] = {ANSWER_TINY_LETTER, true, 16 << 10},
    [ANSWER_TINY_LETTER] = {ANSWER_COORDINATES, true, 256},
    [ANSWER_COORDINATES] = {ANSWER_COUNT, true, 0},
};

enum answer answer_next(enum answer answer) {
    return answers[answer].next;
}

bool answer_is_letter(enum answer answer) {
    return answers[answer].is_letter;
}

size_t answer_part_bytes_max(enum answer answer) {
    return answers[answer].part_bytes_max;
}

#include "base/nearest.h"

#include <string.h>

enum { WORD_MAX = 64 }; /* longer words are not compared */

void nearest_init(struct nearest *nearest, const char *word) {
    *nearest = (struct nearest){.word = word};
}

static size_t min3(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance, one row of the matrix at a time. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size) {
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= b_size; j++) row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_size];
}

void nearest_offer(struct nearest *nearest, const char *candidate) {
    size_t word_size = strlen(nearest->word), size = strlen(candidate);
    if (word_size > WORD_MAX || size > WORD_MAX) return;
    size_t distance = edit_distance(nearest->word, word_size, candidate, size);
    /* Up to a third of the letters wrong is a typing error; more is another word. */
    size_t distance_max = size < 6 ? 2 : size / 3;
    if (distance > distance_max || distance >= size) return;
    if (nearest->text != NULL && distance >= nearest->distance) return;
    nearest->text = candidate;
    nearest->distance = distance;
}

/**
 * Finds the known word that a mistyped one was probably meant to be. Offer the candidates one by
 * one. Lifetime: the words stay the caller's. Threads: plain values.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *text; /* NULL: no candidate so far is near enough */
    size_t distance;  /* edits from `word` to `text` */
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *candidate);

#endif

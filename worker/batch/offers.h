/**
 * Messages that wait to be admitted: how many, and of how many bytes. Part of ready.h, whose lock
 * guards it.
 *
 * Lifetime: zeros to begin with. Threads: one at a time.
 */
#ifndef BATCH_OFFERS_H
#define BATCH_OFFERS_H

#include <stddef.h>
#include <stdint.h>

struct offers {
    size_t count;
    uint64_t bytes;
};

/** Takes `most` messages, or as many as together have `bytes_most`, at least one; 0: there are
 * none. Each counts as large as they are on average. */
size_t offers_claim(struct offers *offers, size_t most, uint64_t bytes_most);

#endif

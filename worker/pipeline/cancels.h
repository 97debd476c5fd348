/**
 * The ids of jobs that are not to be run any more: a bounded set, each id with a time to live.
 * Full, it forgets the oldest.
 *
 * Units: milliseconds since 1970. Lifetime: ids are copied. Memory: about 100 bytes an id, and its
 * own. Threads: any.
 */
#ifndef PIPELINE_CANCELS_H
#define PIPELINE_CANCELS_H

#include "base/error.h"
#include "base/slice.h"

struct cancels;

/** NULL when memory is short. */
struct cancels *cancels_create(uint32_t ids_max, uint32_t ttl_ms);
void cancels_destroy(struct cancels *cancels); /* NULL is fine */

/**
 * The job of that id was cancelled at `at_ms`. *forgot: an older one had to give way.
 * ERR_NO_MEMORY.
 */
MUST_CHECK enum err cancels_add(struct cancels *cancels, struct slice id, uint64_t at_ms,
    uint64_t now_ms, bool *forgot, struct error *err);

/** Quick where nothing is cancelled: asked for every job, more than once. */
bool cancels_has(struct cancels *cancels, struct slice id, uint64_t now_ms);

size_t cancels_count(struct cancels *cancels);

#endif

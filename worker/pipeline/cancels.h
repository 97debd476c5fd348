/**
 * The ids of jobs that were cancelled, or are to stop: a bounded set, in which each id has a time
 * to live. When the set is full, it forgets the oldest id.
 *
 * Units: milliseconds since 1970. Lifetime: ids are copied. Memory: about 100 bytes for each id,
 * and the id itself. Threads: any.
 */
#ifndef PIPELINE_CANCELS_H
#define PIPELINE_CANCELS_H

#include "decode/control_message.h"

struct cancels;

/** NULL when memory is short. */
struct cancels *cancels_create(uint32_t ids_max, uint32_t ttl_ms);
void cancels_destroy(struct cancels *cancels); /* NULL is fine */

/**
 * What was asked of a job at `at_ms`. *forgot: an older id was forgotten for it. ERR_NO_MEMORY.
 */
MUST_CHECK enum err cancels_add(struct cancels *cancels, const struct control_message *message,
    uint64_t at_ms, uint64_t now_ms, bool *forgot, struct error *err);

/** CONTROL_NONE: nothing. Called more than once for each job, so it is quick where nothing is
 * cancelled. */
enum control_action cancels_find(struct cancels *cancels, struct slice id, uint64_t now_ms);

size_t cancels_count(struct cancels *cancels);

#endif

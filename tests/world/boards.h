/**
 * What the workers of a world show of themselves, for people and their monitoring. Threads: the
 * first of the world.
 */
#ifndef TESTS_WORLD_BOARDS_H
#define TESTS_WORLD_BOARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/worker.h"

/** Whether these workers, all of a group, have shown since then that they are at rest: no job is in
 * flight, nothing of their memory is in use but what they keep for later jobs, and each partition
 * of jobs has one reader, which has finished it. `tells`: what is not so. */
bool boards_show_rest(const struct worker *workers, size_t count, uint64_t since_ns, bool tells);

/** How many answers they have counted. */
size_t boards_count_answers(const struct worker *workers, size_t count);

#endif

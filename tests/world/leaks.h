/**
 * What a worker takes and does not give back: memory, and objects of librdkafka. Threads: those of
 * a worker of a world, one of which runs at a time.
 */
#ifndef TESTS_WORLD_LEAKS_H
#define TESTS_WORLD_LEAKS_H

#include <stdbool.h>
#include <stddef.h>

/** Notes from now on what is taken. */
void leaks_begin(void);

/** Returns how much of it was not given back, and tells who took it. */
size_t leaks_end(void);

/** Takes and returns what lies at an address; NULL is nothing. `taker` is where the caller is. */
void *leaks_note(void *at, const void *taker);
void leaks_forget(const void *at);

#endif

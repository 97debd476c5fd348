/**
 * A crew: threads that run one function, are started together and end together.
 *
 * Either all start or none does: the function is called once every thread exists. Tools that list
 * threads show the crew's name (with a number if it has several threads), and so does each thread's
 * pulse, which is idle at first.
 *
 * The caller makes the threads end before it calls crew_join(), for example by closing the queue
 * that they read. Lifetime: from crew_start() to crew_join(). Threads: the one that starts it also
 * joins it.
 */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stdint.h>

#include "base/error.h"

struct crew;

struct crew_options {
    const char *name; /* constant text; at most 15 bytes, with "-" and a number where it has one */
    uint32_t count;   /* 0 is fine */
    void (*run)(void *context, uint32_t index); /* `index` counts the crew's threads from 0 on */
    void *context;
};

/**
 * Errors: ERR_NO_MEMORY, if memory or a limit does not allow this many threads; none is left
 * running.
 */
MUST_CHECK enum err crew_start(
    const struct crew_options *options, struct crew **ret, struct error *err);

/** How many threads it has; 0 for NULL. */
uint32_t crew_count(const struct crew *crew);

/** Waits until all threads have returned, and sets *crew to NULL. *crew may be NULL already. */
void crew_join(struct crew **crew);

#endif

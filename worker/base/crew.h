/**
 * A crew: threads that run one function, are started together and end together.
 *
 * All of them start or none does: the function is called once every thread is there. Tools that
 * list threads show the crew's name (with a number, where it has several), and so does each one's
 * pulse, which is idle at first.
 *
 * The crew does not know how its threads are told to end, such as by closing the queue that they
 * take from: that is said before crew_join(). Lifetime: from crew_start() to crew_join(). Threads:
 * the one that starts it also joins it.
 */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stdint.h>

#include "base/error.h"

struct crew;

struct crew_options {
    const char *name; /* constant text; at most 15 bytes, with "-" and a number where it has one */
    uint32_t count;   /* 0 is fine: a crew of nobody */
    void (*run)(void *context, uint32_t index); /* `index` counts the crew's threads from 0 on */
    void *context;
};

/** ERR_NO_MEMORY, and no thread is left, where memory or a limit allows fewer threads. */
MUST_CHECK enum err crew_start(
    const struct crew_options *options, struct crew **ret, struct error *err);

/** How many threads it has; of NULL: 0. */
uint32_t crew_count(const struct crew *crew);

/** Waits until all have returned from the function. *crew is NULL then, and may have been before.
 */
void crew_join(struct crew **crew);

#endif

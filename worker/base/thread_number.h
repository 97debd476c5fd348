/**
 * The calling thread's number, for tables with a place for each thread: the lowest one, from 0 on,
 * that no living thread has. So the place of a thread that has ended is another's later, which sees
 * all that the first one wrote there. From THREAD_NUMBERS on, numbers only grow: a table of bounded
 * size must let several threads share a place. Threads: any.
 */
#ifndef BASE_THREAD_NUMBER_H
#define BASE_THREAD_NUMBER_H

enum { THREAD_NUMBERS = 64 }; /* that are given out again */

extern _Thread_local unsigned thread_number_known; /* + 1; 0: none yet */

unsigned thread_number_take(void);

/* Inline: a job is counted some sixty times, each time by this number. */
static inline unsigned thread_number(void) {
    return thread_number_known != 0 ? thread_number_known - 1 : thread_number_take();
}

#endif

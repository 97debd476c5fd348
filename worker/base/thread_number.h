/**
 * A number of the calling thread, for tables with a place for each thread: from 0 on, in the order
 * in which threads ask for it. Numbers of threads that ended are not given again, so a table has a
 * bound, and its places may have several users. Threads: any.
 */
#ifndef BASE_THREAD_NUMBER_H
#define BASE_THREAD_NUMBER_H

unsigned thread_number(void);

#endif

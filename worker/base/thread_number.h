/**
 * The calling thread's number, for tables with a place for each thread: from 0 on, in the order in
 * which threads ask. Numbers of ended threads are not reused, so a table of bounded size must let
 * several threads share a place. Threads: any.
 */
#ifndef BASE_THREAD_NUMBER_H
#define BASE_THREAD_NUMBER_H

unsigned thread_number(void);

#endif

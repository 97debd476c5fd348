/** How the C library's heap treats free memory. Threads: call it once, before others start. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

/**
 * Keeps freed memory, up to a bound, for the next message. By default the library returns it to the
 * system whenever the top of the heap is free. The kernel would then clear new pages for every
 * message, which costs more than the message itself.
 */
void heap_keep_freed(void);

#endif

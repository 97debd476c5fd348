/** How the C library's heap treats memory that is free. Threads: once, before others start. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

/**
 * Keeps freed memory, up to a bound, for the next message. By default it goes back to the system as
 * soon as the top of the heap is free, and every message's memory is cleared by the kernel anew,
 * which costs more than the message.
 */
void heap_keep_freed(void);

#endif

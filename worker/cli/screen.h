/**
 * A page on a terminal that is drawn again and again, with as much of it as there are rows.
 * Standard output. Threads: one.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/** False where standard output is no terminal, or one that cannot go back to its top (TERM=dumb).
 * From then on the process holds SIGWINCH back, for screen_wait(). */
bool screen_open(void);

/** Draws the page over the one before. */
void screen_draw(const char *page, size_t size);

/** Until it is time to draw again: after so many seconds, or once the terminal has another size. */
void screen_wait(unsigned seconds);

/**
 * How many bytes of the page, all of them or whole lines, fit into so many rows; 0 rows or columns:
 * the size is not known, and all do. A line that is longer than a row goes on in the next one.
 */
size_t screen_fit(const char *page, size_t size, size_t rows, size_t columns);

#endif

/** Reads a time from the command line. Threads: pure. */
#ifndef CLI_WHEN_H
#define CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/**
 * *ret is in milliseconds since 1970. `text` is "2026-11-21T08:30:00Z", or a time before `now_ms`:
 * "90s", "15m", "2h", "7d". False for anything else.
 */
bool when_read(const char *text, uint64_t now_ms, uint64_t *ret);

#endif

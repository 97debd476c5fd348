/**
 * The disks of a world, on which workers keep their state: for a while all of them are full.
 * Threads: the one that runs.
 */
#ifndef TESTS_WORLD_DISK_H
#define TESTS_WORLD_DISK_H

#include <stdint.h>

/** Before any worker. */
void disk_begin(void);

/** Until then nothing can be allocated or written, as on file systems that copy on write. */
void disk_fill_until(uint64_t until_ns);

#endif

/**
 * The blob store of a world: a folder with one blob, which all workers share, and whose files
 * cannot be read for a while when the world wants it. Threads: the first of the world.
 */
#ifndef TESTS_WORLD_STORE_H
#define TESTS_WORLD_STORE_H

#include <stdint.h>

/** The digest of two floats of a half. */
#define STORE_HALVES "b3f689962d5d23d2c4d34e32885e60cb9af0119e64bbf4ce2446694c45d9cdb9"

/** Makes it, in a folder that is not there yet. */
void store_make(const char *folder);

/** No file can be opened before that. */
void store_fail_until(uint64_t until_ns);

#endif

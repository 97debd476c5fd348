/**
 * The version of librdkafka that a process takes itself to have. In a world it does not matter
 * which library is there, but the worker looks at it.
 */
#ifndef TESTS_WORLD_VERSIONS_H
#define TESTS_WORLD_VERSIONS_H

enum { VERSIONS_COOPERATIVE = 0x020a0000 };

/** At least VERSIONS_COOPERATIVE from now on, with which the worker takes part in cooperative
 * groups. */
void versions_be_new(void);

#endif

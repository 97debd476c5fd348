/**
 * Short memory in a world: for a while, some of what worker/broker asks for is not there. It is
 * asked for while functions of a source or a sink run that are watched. Threads: the one that runs.
 */
#ifndef TESTS_WORLD_MEMORY_H
#define TESTS_WORLD_MEMORY_H

#include <stdint.h>

#include "broker/sink.h"
#include "broker/source.h"

/** Before any worker. */
void memory_begin(void);

/** Until then one allocation of many fails, in each process that is watched. */
void memory_fail_until(uint64_t until_ns);

void memory_watch_source(struct source *source);
void memory_watch_sink(struct sink *sink); /* NULL: nothing */

#endif

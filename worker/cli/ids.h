/**
 * Ids that people ask for. A client makes an id of a job's name, as `NAME:TOKEN`, so people may ask
 * for the name. Threads: pure.
 */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stdbool.h>

#include "base/slice.h"

/** Whether `id` is `asked`, or an id that a client made of this name. */
bool id_answers_to(struct slice id, const char *asked);

#endif

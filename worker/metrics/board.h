/**
 * All that an executor counts and shows, in one piece of memory. A supervisor makes it, hands it to
 * each executor of a device in turn, and reads it: so counts survive executors, and nothing is
 * asked of one that hangs. An executor without a supervisor has one of its own.
 *
 * Nothing in it is trusted by who reads it: texts are ended and counts bounded there. Its size is
 * sealed, so that no executor can take it away from its supervisor.
 *
 * Lifetime: board_create() or board_map() to board_destroy(). Threads: as each part says.
 */
#ifndef METRICS_BOARD_H
#define METRICS_BOARD_H

#include "metrics/counters.h"
#include "metrics/ledger.h"
#include "metrics/panel.h"

struct board {
    struct counters counters;
    struct ledger ledger;
    struct panel panel;
};

/**
 * Makes one. With `fd` it can be shared, and *fd becomes the descriptor that board_map() takes
 * elsewhere, closed by exec(); the caller closes it, where it is not -1, also after an error.
 * ERR_NO_MEMORY, ERR_IO.
 */
MUST_CHECK enum err board_create(struct board **ret, int *fd, struct error *err);

/** One that another process made. ERR_CONFIG: that is no board of this version. */
MUST_CHECK enum err board_map(int fd, struct board **ret, struct error *err);

void board_destroy(struct board *board); /* NULL is fine */

#endif

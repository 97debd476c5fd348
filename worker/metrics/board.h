/**
 * All that an executor counts and shows, in one block of memory. The supervisor creates it, passes
 * it to each executor of a device in turn, and reads it. So counts survive executors, and the
 * supervisor never has to ask an executor that may hang. An executor without a supervisor has a
 * board of its own.
 *
 * Readers do not trust its contents: they terminate texts and bound counts. Its size is sealed, so
 * that no executor can truncate it.
 *
 * Lifetime: from board_create() or board_map() to board_destroy(). Threads: each part says which.
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
 * Creates a board. With `fd` it can be shared: *fd becomes a descriptor for board_map() in another
 * process, which exec() closes. The caller closes it unless it is -1, also after an error. Errors:
 * ERR_NO_MEMORY, ERR_IO.
 */
MUST_CHECK enum err board_create(struct board **ret, int *fd, struct error *err);

/** Maps a board of another process. Errors: ERR_CONFIG, if it is not a board of this version. */
MUST_CHECK enum err board_map(int fd, struct board **ret, struct error *err);

void board_destroy(struct board *board); /* NULL is fine */

#endif

/**
 * All that pages show of executors, read once for all lines: from the supervisor, the state file
 * and the board. Private to supervise/.
 *
 * Lifetime: views_create() to views_destroy(). Threads: pure.
 */
#ifndef SUPERVISE_VIEWS_H
#define SUPERVISE_VIEWS_H

#include "supervise/executors.h"

struct view {
    const struct executor *executor;
    const char *uuid;             /* "": unknown */
    struct state_summary summary; /* of the running life, or else of the previous one */
    bool is_live;            /* an executor runs and updates its panel, so `panel` is current */
    struct totals totals;    /* of all lives since this supervisor started */
    struct panel_view panel; /* empty if it is not live */
};

/** One for each executor; NULL when memory is short. */
struct view *views_create(const struct executor *executors, size_t count, uint64_t now_ns);
void views_destroy(struct view *views); /* NULL is fine */

#endif

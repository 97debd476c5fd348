/**
 * What pages say of executors, read once for all of their lines: what the supervisor itself knows,
 * what the state file says, and what the board shows. Private to supervise/.
 *
 * Lifetime: views_create() to views_destroy(). Threads: pure.
 */
#ifndef SUPERVISE_VIEWS_H
#define SUPERVISE_VIEWS_H

#include "supervise/executors.h"

struct view {
    const struct executor *executor;
    const char *uuid;             /* "": it is not known */
    struct state_summary summary; /* of the life that it lives, or else of the one before */
    bool is_live;                 /* an executor shows how things stand: `panel` is of now */
    struct totals totals;         /* of all lives since this supervisor began */
    struct panel_view panel;      /* empty where it is not live */
};

/** As many as there are executors; NULL when memory is short. */
struct view *views_create(const struct executor *executors, size_t count, uint64_t now_ns);
void views_destroy(struct view *views); /* NULL is fine */

#endif

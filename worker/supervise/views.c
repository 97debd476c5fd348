#include "supervise/views.h"

#include <stdlib.h>

/* An older panel means that the thread that writes it does not move. */
#define STALE_NS 15000000000ull

/* Takes counts of the executor's services from the panel, and all others from the counters, where
 * they are newer. */
static void read_totals(struct view *view, const struct board *board) {
    counters_read(&board->counters, &view->totals);
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (view->panel.totals.of[i] > view->totals.of[i])
            view->totals.of[i] = view->panel.totals.of[i];
}

static void read_view(struct view *view, const struct executor *executor, uint64_t now_ns) {
    bool is_up = executor->watched != NULL;
    view->executor = executor;
    view->summary = is_up ? state_summary(executor->watched) : executor->left;
    view->uuid = executor->device->uuid[0] != 0 ? executor->device->uuid : view->summary.uuid;
    bool is_shown = panel_read(&executor->board->panel, &view->panel);
    read_totals(view, executor->board);
    view->is_live = is_up && is_shown && view->panel.shown_ns >= executor->started_ns &&
                    now_ns < view->panel.shown_ns + STALE_NS;
    if (!view->is_live) view->panel = (struct panel_view){0};
}

struct view *views_create(const struct executor *executors, size_t count, uint64_t now_ns) {
    struct view *ret = calloc(count > 0 ? count : 1, sizeof ret[0]);
    for (size_t i = 0; i < count && ret != NULL; i++) read_view(&ret[i], &executors[i], now_ns);
    return ret;
}

void views_destroy(struct view *views) {
    free(views);
}

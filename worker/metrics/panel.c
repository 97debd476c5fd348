#include "metrics/panel.h"

#include "base/text.h"

enum { TRIES = 3 };

struct panel_view *panel_begin(struct panel *panel) {
    /* relaxed: only the writer changes it */
    return &panel->sides[(atomic_load_explicit(&panel->shown, memory_order_relaxed) + 1) % 2];
}

void panel_show(struct panel *panel) {
    /* release: pairs with the acquires in panel_read() */
    atomic_fetch_add_explicit(&panel->shown, 1, memory_order_release);
}

/* The writing process may have damaged it. */
static void bound(struct panel_view *view) {
    text_mend_within(view->device, sizeof view->device);
    if (view->partition_count > PANEL_PARTITIONS_MAX) view->partition_count = PANEL_PARTITIONS_MAX;
    for (uint32_t i = 0; i < view->partition_count; i++)
        text_mend_within(view->partitions[i].topic, PANEL_TOPIC_BYTES);
}

bool panel_read(struct panel *panel, struct panel_view *ret) {
    for (int i = 0; i < TRIES; i++) {
        /* acquire: pairs with the release in panel_show() */
        uint64_t shown = atomic_load_explicit(&panel->shown, memory_order_acquire);
        if (shown == 0) return false;
        *ret = panel->sides[shown % 2];
        /* release: all reads happen before this. This side is written again only after the next
         * view, which takes a second. */
        if (atomic_fetch_add_explicit(&panel->shown, 0, memory_order_acq_rel) != shown) continue;
        bound(ret);
        return true;
    }
    return false;
}

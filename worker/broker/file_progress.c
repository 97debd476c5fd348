#include "broker/file_progress.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct snapshot {
    int64_t next; /* the lowest unanswered message */
    struct file_lengths lengths;
    uint8_t
        answered[FILE_PROGRESS_WINDOW / 8]; /* a ring with a bit for each message from `next` on */
};

/* The layout of the room. */
struct kept {
    _Atomic uint32_t active; /* 0: nothing is kept; otherwise 1 + the index of the valid snapshot */
    struct snapshot snapshots[2];
};
_Static_assert(sizeof(struct kept) <= FILE_PROGRESS_BYTES, "more room");

struct file_progress {
    struct kept *kept;
    bool is_resumed, is_changed;
    struct snapshot resumed; /* what an earlier process has left */
    struct snapshot now;     /* for the sink's thread only; others read the next field */
    _Atomic int64_t next;    /* the same as now.next, for all threads */
};

static bool has(const struct snapshot *snapshot, int64_t index) {
    size_t bit = (size_t)(index % FILE_PROGRESS_WINDOW);
    return (snapshot->answered[bit / 8] >> bit % 8 & 1) != 0;
}

static void flip(struct snapshot *snapshot, int64_t index) {
    size_t bit = (size_t)(index % FILE_PROGRESS_WINDOW);
    snapshot->answered[bit / 8] = (uint8_t)(snapshot->answered[bit / 8] ^ 1 << bit % 8);
}

enum err file_progress_create(void *room, struct file_progress **ret, struct error *err) {
    struct file_progress *progress = calloc(1, sizeof *progress);
    if (progress == NULL) return error_no_memory(err, "no memory for the progress of files");
    progress->kept = room;
    /* acquire: pairs with the release in file_progress_keep() of an earlier process */
    uint32_t active = atomic_load_explicit(&progress->kept->active, memory_order_acquire);
    if (active == 1 || active == 2) progress->resumed = progress->kept->snapshots[active - 1];
    /* larger numbers are damage: no run reaches them, and adding to them could overflow */
    bool makes_sense = progress->resumed.next >= 0 && progress->resumed.next < INT64_MAX / 2;
    progress->is_resumed = (active == 1 || active == 2) && makes_sense;
    if (!progress->is_resumed) progress->resumed = (struct snapshot){0};
    progress->now = progress->resumed;
    /* relaxed: no other thread yet */
    atomic_store_explicit(&progress->next, progress->now.next, memory_order_relaxed);
    *ret = progress;
    return ERR_OK;
}

void file_progress_destroy(struct file_progress *progress) {
    free(progress);
}

bool file_progress_is_resumed(const struct file_progress *progress, struct file_lengths *ret) {
    *ret = progress->resumed.lengths;
    return progress->is_resumed;
}

bool file_progress_is_answered(const struct file_progress *progress, int64_t index) {
    const struct snapshot *resumed = &progress->resumed;
    if (index < resumed->next) return true;
    return index - resumed->next < FILE_PROGRESS_WINDOW && has(resumed, index);
}

bool file_progress_may_begin(const struct file_progress *progress, int64_t index) {
    /* relaxed: it only grows, and an old value only refuses too early */
    int64_t next = atomic_load_explicit(&progress->next, memory_order_relaxed);
    return index < next || index - next < FILE_PROGRESS_WINDOW;
}

void file_progress_finish(struct file_progress *progress, int64_t index) {
    struct snapshot *now = &progress->now;
    if (index < now->next || index - now->next >= FILE_PROGRESS_WINDOW || has(now, index)) return;
    flip(now, index);
    for (; has(now, now->next); now->next++) flip(now, now->next);
    /* relaxed: a single number */
    atomic_store_explicit(&progress->next, now->next, memory_order_relaxed);
    progress->is_changed = true;
}

void file_progress_keep(struct file_progress *progress, const struct file_lengths *lengths) {
    struct kept *kept = progress->kept;
    /* relaxed: only we write it */
    uint32_t active = atomic_load_explicit(&kept->active, memory_order_relaxed);
    if (active != 0 && !progress->is_changed) return;
    uint32_t other = active == 1 ? 2 : 1;
    progress->now.lengths = *lengths;
    kept->snapshots[other - 1] = progress->now;
    progress->is_changed = false;
    /*
     * release: pairs with the acquire in file_progress_create(); a snapshot that is active is
     * complete
     */
    atomic_store_explicit(&kept->active, other, memory_order_release);
}

#include "state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "state/layout.h"

enum { LOCK_POLL_MS = 20 };

static const char FIX_DISK[] = "set state.dir to a folder on this machine that can be written";
static const char FIX_LIMIT[] = "raise the limit on the size of files (ulimit -f, LimitFSIZE)";
static const char FIX_ROOM[] = "free space on the disk of state.dir, or set it to another one";

/*
 * FNV-1a (Fowler, Noll, Vo): detects accidental damage, and gives the same value in every process.
 */
static uint64_t checksum_of(const struct state_fixed *fixed) {
    const uint8_t *bytes = (const uint8_t *)fixed;
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(struct state_fixed, checksum); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

static struct state_fixed fixed_of(const struct state_shape *shape, uint32_t suspect_count) {
    struct state_fixed fixed = {.version = STATE_VERSION,
        .error_count = ERR_COUNT,
        .head_bytes = sizeof(struct state_head),
        .suspect_bytes = sizeof(struct state_suspect),
        .batch_bytes = sizeof(struct state_batch),
        .search_bytes = sizeof(struct state_search),
        .suspect_count = suspect_count,
        .shape = *shape};
    memcpy(fixed.magic, STATE_MAGIC, sizeof fixed.magic);
    fixed.checksum = checksum_of(&fixed);
    return fixed;
}

/* ---- what is where ---- */

/* Takes the next part of the file, and moves `at` past it, to a cache line. */
static void *part(struct state *state, size_t *at, size_t count, size_t bytes_each) {
    void *ret = state->base == NULL ? NULL : (char *)state->base + *at;
    size_t mask = STATE_LINE_BYTES - 1;
    *at = (*at + count * bytes_each + mask) & ~mask;
    return ret;
}

/*
 * Sets the pointers to all parts, and returns the size of the file. Shape and count are within
 * bounds.
 */
static size_t lay_out(struct state *state) {
    const struct state_shape *shape = &state->shape;
    size_t at = 0, batch_count = (size_t)shape->lanes * shape->depth;
    state->head = part(state, &at, 1, sizeof *state->head);
    state->topics = part(state, &at, STATE_TOPICS_MAX, sizeof *state->topics);
    state->threads = part(state, &at, STATE_THREADS_MAX, sizeof *state->threads);
    state->pulses = part(state, &at, PULSE_COUNT, sizeof *state->pulses);
    state->progress = part(state, &at, 1, STATE_PROGRESS_BYTES);
    state->suspensions = part(state, &at, 1, sizeof *state->suspensions);
    state->unevens = part(state, &at, 1, sizeof *state->unevens);
    state->fetches = part(state, &at, FETCHES_MAX, sizeof *state->fetches);
    state->suspects = part(state, &at, state->suspect_count, sizeof *state->suspects);
    state->searches = part(state, &at, STATE_SEARCHES_MAX, sizeof *state->searches);
    state->lanes = part(state, &at, shape->lanes, sizeof *state->lanes);
    state->batches = part(state, &at, batch_count, sizeof *state->batches);
    state->entries = part(state, &at, batch_count * shape->batch_jobs, sizeof *state->entries);
    return at;
}

static bool shape_is_valid(const struct state_shape *shape) {
    return shape->lanes <= STATE_LANES_MAX && shape->depth <= STATE_DEPTH_MAX &&
           shape->batch_jobs <= STATE_BATCH_JOBS_MAX;
}

static uint32_t suspects_for(const struct state_shape *shape) {
    uint64_t jobs = (uint64_t)shape->lanes * shape->depth * shape->batch_jobs;
    return jobs + STATE_THREADS_MAX < STATE_SUSPECTS_MAX ? (uint32_t)jobs + STATE_THREADS_MAX
                                                         : STATE_SUSPECTS_MAX;
}

/* ---- the mapping ---- */

static enum err fail_io(struct error *err, const char *what, const char *path) {
    int native = errno;
    return error_set(err, ERR_IO, native, FIX_DISK, "%s %s: %s", what, path, strerror(native));
}

static struct state *create(const char *path) {
    static _Atomic uint64_t serial;
    size_t size = strlen(path) + 1;
    struct state *state = calloc(1, sizeof *state + size);
    if (state == NULL) return NULL;
    state->fd = -1;
    /* relaxed: only uniqueness matters */
    state->serial = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1;
    pthread_mutex_init(&state->topics_lock, NULL);
    memcpy(state->path, path, size);
    return state;
}

static enum err no_memory(struct error *err, const char *path) {
    return error_no_memory(err, "no memory for %s", path);
}

void state_close(struct state *state) {
    if (state == NULL) return;
    if (state->base != NULL) munmap(state->base, state->bytes);
    if (state->fd >= 0) close(state->fd);
    pthread_mutex_destroy(&state->topics_lock);
    free(state);
}

/* Always maps the size of the largest possible file, so that nothing moves when the file grows. */
static size_t mapping_bytes(void) {
    struct state largest = {.suspect_count = STATE_SUSPECTS_MAX,
        .shape = {STATE_LANES_MAX, STATE_DEPTH_MAX, STATE_BATCH_JOBS_MAX}};
    return lay_out(&largest);
}

/*
 * Maps the file, or with `is_copy` anonymous memory for a copy. A copy is for processes that must
 * survive disk errors: they reach the file only by system calls, which can fail safely.
 */
static enum err map(struct state *state, bool is_copy, struct error *err) {
    int flags = is_copy ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    size_t bytes = mapping_bytes();
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, is_copy ? -1 : state->fd, 0);
    if (base == MAP_FAILED) return fail_io(err, "mapping", state->path);
    state->base = base;
    state->bytes = bytes;
    lay_out(state);
    return ERR_OK;
}

/*
 * Takes over the file's shape if its head and length are valid. ERR_BAD_MESSAGE says why they are
 * not.
 */
static enum err check_file(struct state *state, struct error *err) {
    struct state_fixed fixed;
    struct stat file;
    const char *why = NULL;
    if (fstat(state->fd, &file) != 0) return fail_io(err, "reading", state->path);
    if (pread(state->fd, &fixed, sizeof fixed, 0) != (ssize_t)sizeof fixed) why = "is cut";
    else if (memcmp(fixed.magic, STATE_MAGIC, sizeof fixed.magic) != 0) why = "is not a state file";
    else if (fixed.checksum != checksum_of(&fixed)) why = "is damaged";
    else if (!shape_is_valid(&fixed.shape) || fixed.suspect_count > STATE_SUSPECTS_MAX)
        why = "is damaged";
    if (why == NULL) {
        struct state_fixed ours = fixed_of(&fixed.shape, fixed.suspect_count);
        state->shape = fixed.shape;
        state->suspect_count = fixed.suspect_count;
        if (memcmp(&ours, &fixed, sizeof ours) != 0) why = "is of another version";
        else if (file.st_size < (off_t)lay_out(state)) why = "is cut";
    }
    if (why == NULL) return ERR_OK;
    return error_set(err, ERR_BAD_MESSAGE, 0, "", "%s %s", state->path, why);
}

static bool suspect_makes_sense(const struct state *state, const struct state_suspect *suspect) {
    bool is_convicted =
        suspect->standing == STATE_CONVICTED || suspect->standing == STATE_UNDECODABLE;
    bool has_code = suspect->code > ERR_OK && suspect->code < ERR_COUNT;
    return suspect->standing <= STATE_UNDECODABLE && (has_code || !is_convicted) &&
           suspect->at.attempt > 0 && state_topic(state, &suspect->at) != NULL;
}

/* Frees entries that no executor of this version could have written, and terminates every text. */
static void check_suspects(struct state *state) {
    for (size_t i = 0; i < state->suspect_count; i++) {
        struct state_suspect *suspect = &state->suspects[i];
        if (suspect->standing == STATE_FREE) continue;
        if (!suspect_makes_sense(state, suspect)) *suspect = (struct state_suspect){0};
        suspect->message[STATE_MESSAGE_BYTES - 1] = 0;
        text_mend(suspect->message);
    }
}

static bool range_makes_sense(const struct state_range *range, uint32_t instances) {
    return range->first <= instances && range->count <= instances - range->first;
}

/* In the array, and named once. */
static bool culprit_makes_sense(const struct state_search *search, uint32_t index) {
    const struct state_culprit *culprit = &search->culprits[index];
    for (uint32_t i = 0; i < index; i++)
        if (search->culprits[i].instance == culprit->instance) return false;
    return culprit->instance < search->instances && culprit->code > ERR_OK &&
           culprit->code < ERR_COUNT;
}

static bool search_makes_sense(const struct state *state, const struct state_search *search) {
    if (search->use > STATE_SEARCH_ANSWERED || search->instances == 0 ||
        search->culprits_max > STATE_CULPRITS_MAX || search->culprit_count > search->culprits_max ||
        !range_makes_sense(&search->running, search->instances) ||
        !range_makes_sense(&search->suspected, search->instances) ||
        search->suspected_end > search->instances)
        return false;
    for (uint32_t i = 0; i < search->culprit_count; i++)
        if (!culprit_makes_sense(search, i)) return false;
    return state_topic(state, &search->at) != NULL;
}

/* As check_suspects(). */
static void check_searches(struct state *state) {
    for (size_t i = 0; i < STATE_SEARCHES_MAX; i++) {
        struct state_search *search = &state->searches[i];
        if (search->use == STATE_SEARCH_FREE) continue;
        if (!search_makes_sense(state, search))
            *search = (struct state_search){.use = STATE_SEARCH_FREE};
        for (size_t k = 0; k < search->culprit_count; k++) {
            search->culprits[k].message[STATE_MESSAGE_BYTES - 1] = 0;
            text_mend(search->culprits[k].message);
        }
    }
}

/*
 * Allocates all blocks of the file on disk, and enlarges it if it is shorter. Without that, a store
 * into the mapping on a full disk would be a SIGBUS.
 */
static enum err allocate(struct state *state, struct error *err) {
    int native = posix_fallocate(state->fd, 0, (off_t)lay_out(state));
    if (native == 0) return ERR_OK;
    const char *fix = native == EFBIG ? FIX_LIMIT : FIX_ROOM;
    return error_set(err, ERR_IO, native, fix, "no room for the state file %s: %s", state->path,
        strerror(native));
}

/* A failure here leaves an empty file, which counts as no file. */
static enum err make_empty(struct state *state, struct error *err) {
    state->shape = (struct state_shape){0};
    state->suspect_count = 0;
    struct state_fixed fixed = fixed_of(&state->shape, 0);
    enum err code = allocate(state, err);
    if (code == ERR_OK && pwrite(state->fd, &fixed, sizeof fixed, 0) != (ssize_t)sizeof fixed)
        code = fail_io(err, "writing", state->path);
    if (code != ERR_OK) (void)!ftruncate(state->fd, 0);
    return code;
}

/* ---- opening ---- */

static enum err lock(struct state *state, int timeout_ms, struct error *err) {
    const struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000};
    uint64_t until_ns = clock_ns_in((uint64_t)timeout_ms);
    while (flock(state->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fail_io(err, "locking", state->path);
        if (clock_ns() >= until_ns)
            return error_set(err, ERR_CONFIG, 0,
                "stop the other one, or give this one another state.dir or other devices",
                "another executor runs with %s", state->path);
        nanosleep(&pause, NULL);
    }
    return ERR_OK;
}

static enum err open_plain(struct state *state, int flags, struct error *err) {
    struct error why;
    if (file_open(state->path, flags | O_NOFOLLOW, &state->fd, &why) == ERR_OK) return ERR_OK;
    return error_set(err, ERR_IO, why.native, FIX_DISK, "opening %s", why.message);
}

static enum err open_file(struct state *state, int timeout_ms, struct error *err) {
    if (state->fd >= 0) close(state->fd);
    enum err code = open_plain(state, O_RDWR | O_CREAT, err);
    return code != ERR_OK ? code : lock(state, timeout_ms, err);
}

/* The renamed file stays locked until it is closed. */
static enum err set_file_aside(struct state *state, int timeout_ms, struct error *err) {
    char *aside;
    if (asprintf(&aside, "%s.damaged", state->path) < 0) return no_memory(err, state->path);
    int failed = rename(state->path, aside);
    free(aside);
    if (failed != 0) return fail_io(err, "renaming", state->path);
    enum err code = open_file(state, timeout_ms, err);
    return code == ERR_OK ? make_empty(state, err) : code;
}

static enum err open_checked(
    struct state *state, int timeout_ms, struct error *set_aside, struct error *err) {
    struct stat file;
    enum err code = open_file(state, timeout_ms, err);
    if (code != ERR_OK) return code;
    if (fstat(state->fd, &file) != 0) return fail_io(err, "reading", state->path);
    if (file.st_size == 0) return make_empty(state, err);
    code = check_file(state, err);
    if (code == ERR_OK) return allocate(state, err); /* a copy of a file may have holes */
    if (code != ERR_BAD_MESSAGE) return code;
    *set_aside = *err;
    return set_file_aside(state, timeout_ms, err);
}

/*
 * Drawn once for each file. Names are hashed with it, so that nobody can choose names that collide.
 */
static void draw_secret(struct suspensions *all) {
    if (all->secret[0] != 0) return;
    if (getrandom(all->secret, sizeof all->secret, 0) != (ssize_t)sizeof all->secret) abort();
}

enum err state_open(const char *path, int lock_timeout_ms, struct state **ret,
    struct error *set_aside, struct error *err) {
    set_aside->code = ERR_OK;
    struct state *state = create(path);
    if (state == NULL) return no_memory(err, path);
    enum err code = open_checked(state, lock_timeout_ms, set_aside, err);
    if (code == ERR_OK) code = map(state, false, err);
    if (code == ERR_OK) {
        check_suspects(state);
        check_searches(state);
        draw_secret(state->suspensions);
        *ret = state;
    } else {
        state_close(state);
    }
    return code;
}

enum err state_touch(const char *path, struct state **ret, struct error *err) {
    struct state *state = create(path);
    if (state == NULL) return no_memory(err, path);
    enum err code = open_plain(state, O_RDWR, err);
    if (code == ERR_OK) code = check_file(state, err);
    if (code == ERR_OK) code = map(state, false, err);
    if (code == ERR_OK) *ret = state;
    else state_close(state);
    return code == ERR_BAD_MESSAGE ? ERR_IO : code;
}

/* ---- copies ---- */

static enum err copy_part(
    struct state *state, const void *from, const void *end, struct error *err) {
    size_t at = (size_t)((const char *)from - (const char *)state->base);
    size_t size = (size_t)((const char *)end - (const char *)from);
    while (size > 0) {
        ssize_t count = pread(state->fd, (char *)state->base + at, size, (off_t)at);
        if (count < 0) return fail_io(err, "reading", state->path);
        if (count == 0) return error_set(err, ERR_IO, 0, FIX_DISK, "%s is cut", state->path);
        at += (size_t)count;
        size -= (size_t)count;
    }
    return ERR_OK;
}

/* Suspects and the jobs of batches are left out: a watcher has no use for them. */
enum err state_look(struct state *state, struct error *err) {
    struct state_fixed fixed = fixed_of(&state->shape, state->suspect_count);
    enum err code = copy_part(state, state->base, state->suspects, err);
    if (code == ERR_OK && memcmp(&fixed, &state->head->fixed, sizeof fixed) != 0)
        return error_set(err, ERR_IO, 0, FIX_DISK, "%s has changed its shape", state->path);
    return code == ERR_OK ? copy_part(state, state->lanes, state->entries, err) : code;
}

enum err state_watch(const char *path, uint64_t life, struct state **ret, struct error *err) {
    struct state *state = create(path);
    if (state == NULL) return no_memory(err, path);
    enum err code = open_plain(state, O_RDONLY, err);
    if (code == ERR_OK) code = check_file(state, err);
    if (code == ERR_OK) code = map(state, true, err);
    if (code == ERR_OK) code = state_look(state, err);
    if (code == ERR_OK && life != 0 && state_summary(state).life != life)
        code = error_set(err, ERR_IO, 0, "", "%s is not that of this life", path);
    if (code == ERR_OK) *ret = state;
    else state_close(state);
    return code == ERR_BAD_MESSAGE ? ERR_IO : code;
}

enum err state_amend(const char *path, int lock_timeout_ms, struct state **ret, struct error *err) {
    struct error set_aside;
    struct state *state = create(path);
    if (state == NULL) return no_memory(err, path);
    enum err code = open_checked(state, lock_timeout_ms, &set_aside, err);
    if (code == ERR_OK) code = map(state, true, err);
    if (code == ERR_OK) code = copy_part(state, state->base, state->entries, err);
    if (code == ERR_OK) *ret = state;
    else state_close(state);
    return code;
}

enum err state_save(struct state *state, struct error *err) {
    ssize_t size = (ssize_t)sizeof *state->head;
    if (pwrite(state->fd, state->head, sizeof *state->head, 0) == size) return ERR_OK;
    return fail_io(err, "writing", state->path);
}

/* ---- lives ---- */

static void forget_left(struct state *state) {
    size_t batch_count = (size_t)state->shape.lanes * state->shape.depth;
    for (size_t i = 0; i < STATE_THREADS_MAX; i++) {
        /* relaxed, as everything in this function: no other thread uses the state now */
        atomic_store_explicit(&state->threads[i].is_set, 0, memory_order_relaxed);
    }
    for (size_t i = 0; i < PULSE_COUNT; i++)
        atomic_store_explicit(&state->pulses[i].busy_ns, 0, memory_order_relaxed);
    for (size_t i = 0; i < batch_count; i++)
        atomic_store_explicit(&state->batches[i].job_count, 0, memory_order_relaxed);
    for (size_t i = 0; i < state->shape.lanes; i++)
        atomic_store_explicit(&state->lanes[i].fence_ns, 0, memory_order_relaxed);
}

uint64_t state_draw_life(void) {
    uint64_t life;
    if (getrandom(&life, sizeof life, 0) != (ssize_t)sizeof life)
        life = clock_ns() ^ (uint64_t)getpid() << 40;
    return life | 1;
}

/* The file never shrinks, so the mappings of processes that watch it stay valid. A failure leaves
 * the shape as it was: what is behind the file's end must not be touched. */
static enum err change_shape(
    struct state *state, const struct state_shape *shape, struct error *err) {
    const struct state_shape old_shape = state->shape;
    const uint32_t old_suspects = state->suspect_count;
    size_t kept = (size_t)((char *)(state->suspects + state->suspect_count) - (char *)state->base);
    size_t old_bytes = lay_out(state);
    state->shape = *shape;
    if (suspects_for(shape) > state->suspect_count) state->suspect_count = suspects_for(shape);
    enum err code = allocate(state, err);
    if (code != ERR_OK) {
        state->shape = old_shape;
        state->suspect_count = old_suspects;
        lay_out(state);
        return code;
    }
    memset((char *)state->base + kept, 0, old_bytes - kept);
    state->head->fixed = fixed_of(shape, state->suspect_count);
    return ERR_OK;
}

enum err state_begin(struct state *state, const struct state_shape *shape, uint32_t device,
    const char *uuid, struct error *err) {
    if (state == NULL) return ERR_OK;
    struct state_head *head = state->head;
    uint64_t life = state->life != 0 ? state->life : state_draw_life();
    /* relaxed, as all stores but the last: no other thread uses the state yet */
    atomic_store_explicit(&head->life, 0, memory_order_relaxed);
    forget_left(state);
    if (memcmp(shape, &state->shape, sizeof *shape) != 0) {
        enum err code = change_shape(state, shape, err);
        if (code != ERR_OK) return code;
    }
    head->device = device;
    snprintf(head->uuid, sizeof head->uuid, "%s", uuid);
    atomic_store_explicit(&head->death_taken, 0, memory_order_relaxed);
    atomic_store_explicit(&head->death_written, 0, memory_order_relaxed);
    atomic_store_explicit(&head->stop_asked, 0, memory_order_relaxed);
    atomic_store_explicit(&head->is_unhealthy, 0, memory_order_relaxed);
    atomic_store_explicit(&head->is_troubled, 0, memory_order_relaxed);
    atomic_store_explicit(&head->programs, 0, memory_order_relaxed);
    atomic_store_explicit(&head->is_reload_refused, 0, memory_order_relaxed);
    atomic_store_explicit(&head->group, STATE_GROUP_UNKNOWN, memory_order_relaxed);
    atomic_store_explicit(&head->heartbeat_ns, clock_ns(), memory_order_relaxed);
    atomic_fetch_add_explicit(&head->lives, 1, memory_order_relaxed);
    atomic_store_explicit(&head->pid, (int32_t)getpid(), memory_order_relaxed);
    /*
     * release: pairs with the acquire in state_summary(); a reader that sees it sees the new shape
     */
    atomic_store_explicit(&head->life, life, memory_order_release);
    atomic_store_explicit(&state->has_begun, 1, memory_order_relaxed); /* for signal handlers */
    return ERR_OK;
}

void state_name_life(struct state *state, uint64_t life) {
    if (state != NULL) state->life = life;
}

/* Forgets what is known of partitions, except of those that are set aside. */
static void forget_fetches(struct state *state) {
    for (size_t i = 0; i < FETCHES_MAX; i++) {
        _Atomic uint32_t *standing = &state->fetches[i].standing;
        /* relaxed: each value stands alone; a watcher sees the previous one at worst */
        if (atomic_load_explicit(standing, memory_order_relaxed) != FETCH_ASIDE)
            atomic_store_explicit(standing, FETCH_FREE, memory_order_relaxed);
    }
}

void state_forget(struct state *state) {
    if (state == NULL) return;
    forget_left(state);
    memset(state->fetches, 0, FETCHES_MAX * sizeof state->fetches[0]);
    if (state->suspect_count > 0)
        memset(state->suspects, 0, state->suspect_count * sizeof state->suspects[0]);
    memset(state->searches, 0, STATE_SEARCHES_MAX * sizeof state->searches[0]);
}

void state_end(struct state *state) {
    if (state == NULL) return;
    forget_left(state);
    forget_fetches(state);
}

/* ---- what is kept ---- */

struct state_suspect *state_suspects(struct state *state, size_t *capacity) {
    *capacity = state == NULL ? 0 : state->suspect_count;
    return state == NULL ? NULL : state->suspects;
}

struct suspensions *state_suspensions(const struct state *state) {
    return state == NULL ? NULL : state->suspensions;
}

struct state_fetch *state_fetches(const struct state *state) {
    return state == NULL ? NULL : state->fetches;
}

struct state_search *state_searches(const struct state *state) {
    return state == NULL ? NULL : state->searches;
}

struct pulse *state_pulses(struct state *state) {
    return state == NULL ? NULL : state->pulses;
}

void *state_progress(struct state *state) {
    return state == NULL ? NULL : state->progress;
}

/* A state file with damage behind its head: read, judged, and used for another life.
 * The input is a list of places and what stands there instead. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/file_progress.h"
#include "fuzz.h"
#include "quarantine/attribution.h"
#include "quarantine/culprits.h"
#include "quarantine/fetches.h"
#include "quarantine/suspensions.h"
#include "state/layout.h"
#include "support/scratch.h"

enum { PATCH_BYTES = 5, LEFT_MAX = 1 << 20, NOW_MS = 1000000000 };

static const struct suspension_rules rules = {
    .convictions = 2, .window_ms = 60000, .for_ms = 60000};

static const struct state_shape shape = {.lanes = 2, .depth = 2, .batch_jobs = 4};
static const struct state_shape larger = {.lanes = 3, .depth = 4, .batch_jobs = 8};

static char *folder, *path;
static uint8_t *whole; /* the file as an executor left it that died at work */
static size_t whole_bytes;

static struct state *open_file(void) {
    struct state *state;
    struct error set_aside, err;
    FUZZ_CHECK(state_open(path, 0, &state, &set_aside, &err) == ERR_OK);
    return state;
}

static void leave_work(struct state *state) {
    struct error err;
    const struct position position = {.topic = "jobs", .partition = 1, .offset = 7};
    const struct state_death death = {.kind = STATE_DEATH_SIGNAL, .native = 11, .message = "why"};
    FUZZ_CHECK(state_begin(state, &shape, 0, "GPU-0", &err) == ERR_OK);
    state_enter(state, &position, 1);
    for (uint32_t i = 0; i < shape.batch_jobs; i++) {
        const struct position noted = {.topic = "jobs", .offset = i};
        state_note_job(state, 1, 1, i, &noted, 1);
    }
    state_launch(state, 1, 1, shape.batch_jobs, 3, 1000);
    state_record_death(state, &death);
}

static void clean_up(void) {
    free(path);
    scratch_remove(folder);
}

static void make_whole(void) {
    folder = scratch_create();
    FUZZ_CHECK(asprintf(&path, "%s/gpu0.state", folder) > 0);
    FUZZ_CHECK(atexit(clean_up) == 0);
    struct state *state = open_file();
    struct stat file;
    leave_work(state);
    (void)attribution_apply(state);
    leave_work(state);
    FUZZ_CHECK(fstat(state->fd, &file) == 0);
    whole_bytes = (size_t)file.st_size;
    whole = malloc(whole_bytes);
    FUZZ_CHECK(whole != NULL && pread(state->fd, whole, whole_bytes, 0) == file.st_size);
    state_close(state);
}

/* The head's sums are another matter: what they do not fit is not read at all. */
static void write_damaged(const uint8_t *data, size_t size) {
    uint8_t *damaged = malloc(whole_bytes);
    FUZZ_CHECK(damaged != NULL);
    memcpy(damaged, whole, whole_bytes);
    for (; size >= PATCH_BYTES; data += PATCH_BYTES, size -= PATCH_BYTES) {
        size_t at = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16;
        at = sizeof(struct state_fixed) + at % (whole_bytes - sizeof(struct state_fixed) - 1);
        memcpy(damaged + at, data + 3, 2);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, damaged, whole_bytes) == (ssize_t)whole_bytes);
    close(fd);
    free(damaged);
}

static void count_left(void *context, const struct state_left *left) {
    size_t *count = context;
    FUZZ_CHECK(left->position.topic != NULL && strlen(left->position.topic) < STATE_TOPIC_BYTES);
    FUZZ_CHECK(++*count < LEFT_MAX);
}

static void check_suspension(void *context, const struct suspension *suspension) {
    FUZZ_CHECK(suspension->name.size <= SUSPENSION_NAME_BYTES);
    FUZZ_CHECK(suspension->until_ms > 0);
}

static void check_aside(void *context, const char *topic, int32_t partition, int64_t offset) {
    FUZZ_CHECK(strlen(topic) < 256);
}

static void look_on(void) {
    struct state *state;
    struct state_overdue overdue;
    struct state_waits waits = {0};
    struct error err;
    if (state_watch(path, 0, &state, &err) != ERR_OK) return;
    const struct state_summary summary = state_summary(state);
    FUZZ_CHECK(strlen(summary.uuid) < sizeof summary.uuid);
    FUZZ_CHECK(strlen(summary.fault) < sizeof summary.fault);
    suspensions_each(state, 0, check_suspension, NULL);
    fetches_each_aside(state, check_aside, NULL);
    for (uint64_t now_ns = 1; now_ns > 0; now_ns <<= 7)
        if (state_find_overdue(state, now_ns, &waits, &overdue))
            FUZZ_CHECK(overdue.lane < shape.lanes);
    state_close(state);
}

static void check_suspects(struct state *state) {
    size_t capacity;
    const struct state_suspect *suspects = state_suspects(state, &capacity);
    for (size_t i = 0; i < capacity; i++) {
        if (suspects[i].standing == STATE_FREE) continue;
        FUZZ_CHECK(state_topic(state, &suspects[i].at) != NULL);
        FUZZ_CHECK(strlen(suspects[i].message) < STATE_MESSAGE_BYTES);
    }
}

/* An array is run as the file says. */
static void run_array(struct state *state) {
    const struct position position = {.topic = "jobs", .partition = 0, .offset = 7};
    struct state_search *search = culprits_search(state, &position, 50, 8);
    if (search == NULL) return;
    struct culprits_walk walk = culprits_walk(search, 50, 7);
    struct array_slice slice;
    uint32_t count = 0;
    while (culprits_walk_next(&walk, &slice)) {
        FUZZ_CHECK(slice.count > 0 && slice.first < 50 && slice.count <= 50 - slice.first);
        count += slice.count;
        if (slice.first < 40) culprits_walk_fence(&walk);
    }
    FUZZ_CHECK(count + search->culprit_count == 50);
    (void)!culprits_blame(search, ERR_GPU_HANG, "over its time");
}

static void go_on(struct state *state) {
    struct file_progress *progress;
    struct error err;
    size_t count = 0;
    state_each_left(state, count_left, &count);
    fetches_judge(state);
    (void)!fetches_ask(state, "jobs", 0, 7);
    fetches_try(state, "jobs", 0);
    fetches_pass(state, "jobs", 0);
    fetches_each_aside(state, check_aside, NULL);
    const struct attribution attribution = attribution_apply(state);
    FUZZ_CHECK(strlen(attribution.death.message) < STATE_MESSAGE_BYTES);
    check_suspects(state);
    run_array(state);
    (void)suspensions_count_death(state, &rules, slice_of_text("key"), NOW_MS);
    suspensions_convict(state, &rules, slice_of_text("key"), slice_of_text("saxpy"), NOW_MS);
    suspensions_praise(state, slice_of_text("other"), slice_of_text("saxpy"), NOW_MS);
    suspensions_each(state, 0, check_suspension, NULL);
    FUZZ_CHECK(file_progress_create(state_progress(state), &progress, &err) == ERR_OK);
    for (int64_t i = 0; i < 4; i++) file_progress_finish(progress, i);
    file_progress_keep(progress, &(struct file_lengths){1, 2});
    file_progress_destroy(progress);
    leave_work(state);
    FUZZ_CHECK(state_begin(state, &larger, 0, "GPU-0", &err) == ERR_OK);
    check_suspects(state);
    count = 0;
    state_each_left(state, count_left, &count);
    FUZZ_CHECK(count == 0);
    state_end(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (whole == NULL) make_whole();
    write_damaged(data, size);
    look_on();
    struct state *state = open_file();
    go_on(state);
    state_close(state);
    return 0;
}

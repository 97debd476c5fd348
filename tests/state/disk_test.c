/* The state file on disks that are full, fail, or lose its end. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/state.h"
#include "support/io_faults.h"
#include "support/state_rig.h"
#include "testing.h"

enum { LIFE = 7, CALLS_MAX = 64 };

static const struct state_shape shape = {.lanes = 3, .depth = 2, .batch_jobs = 64};

static int tear_down(void **state) {
    io_faults_arm(NULL);
    return state_place_tear_down(state);
}

static enum err open_and_begin(const char *path, struct state **ret, struct error *err) {
    struct error set_aside;
    struct state *state = NULL;
    enum err code = state_open(path, 0, &state, &set_aside, err);
    if (code == ERR_OK) {
        state_name_life(state, LIFE);
        code = state_begin(state, &shape, 0, "GPU-1", err);
    }
    if (code == ERR_OK) *ret = state;
    else state_close(state);
    return code;
}

/* Stores into every part of it, the last entry of the last batch too. */
static void use_all(struct state *state) {
    const struct position position = {.topic = "jobs", .partition = 1, .offset = 5};
    size_t capacity;
    state_enter(state, &position, 1);
    state_note_job(state, shape.lanes - 1, shape.depth - 1, shape.batch_jobs - 1, &position, 1);
    state_launch(state, shape.lanes - 1, shape.depth - 1, shape.batch_jobs, 9, 1);
    struct state_suspect *suspects = state_suspects(state, &capacity);
    suspects[capacity - 1].tries = 1;
    memset(state_progress(state), 1, STATE_PROGRESS_BYTES);
}

/* A disk of its own for this process, of so many bytes. False where that may not be. */
static bool mount_small_disk(const char *folder, size_t bytes) {
    char options[64];
    snprintf(options, sizeof options, "size=%zu", bytes);
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, options) == 0;
}

static void fill_disk(const char *folder) {
    static const char zeros[4096];
    char path[512];
    snprintf(path, sizeof path, "%s/filler", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

TEST(a_full_disk_is_an_error_before_the_first_store) {
    struct state_place *place = *state;
    struct state *opened = NULL;
    struct error err;
    if (!mount_small_disk(place->folder, 64 << 10)) skip();
    enum err code = open_and_begin(place->path, &opened, &err);
    if (code == ERR_OK) use_all(opened); /* SIGBUS, where the blocks are not there */
    assert_int_equal(code, ERR_IO);
    assert_non_null(strstr(err.message, "no room for the state file"));
    assert_int_equal(umount2(place->folder, MNT_DETACH), 0);
}

TEST(what_was_allocated_serves_the_next_life_on_a_full_disk) {
    struct state_place *place = *state;
    struct state *opened;
    struct error err;
    if (!mount_small_disk(place->folder, 4 << 20)) skip();
    assert_int_equal(open_and_begin(place->path, &opened, &err), ERR_OK);
    fill_disk(place->folder);
    use_all(opened);
    state_close(opened);
    assert_int_equal(open_and_begin(place->path, &opened, &err), ERR_OK);
    use_all(opened);
    state_close(opened);
    assert_int_equal(umount2(place->folder, MNT_DETACH), 0);
}

/* Each call in turn: refused, or done; and the next one who comes has a file that is whole. */
static void assert_every_call_may_fail(const struct state_place *place, int error) {
    for (uint64_t nth = 1; nth < CALLS_MAX; nth++) {
        const struct io_faults faults = {.folder = place->folder,
            .calls = IO_CALLS_ALL,
            .nth = nth,
            .is_once = true,
            .error = error};
        struct state *opened;
        struct error err;
        io_faults_arm(&faults);
        enum err code = open_and_begin(place->path, &opened, &err);
        uint64_t seen = io_faults_seen();
        io_faults_arm(NULL);
        if (code == ERR_OK) use_all(opened);
        if (code == ERR_OK) state_close(opened);
        else assert_int_equal(code, ERR_IO);
        assert_int_equal(open_and_begin(place->path, &opened, &err), ERR_OK);
        use_all(opened);
        state_close(opened);
        if (nth % 2 == 0) assert_return_code(unlink(place->path), errno);
        if (seen < nth) return;
    }
    fail_msg("more than %d calls", CALLS_MAX);
}

TEST(an_executor_meets_a_disk_without_room_at_every_call) {
    assert_every_call_may_fail(*state, ENOSPC);
}

TEST(an_executor_meets_a_disk_that_fails_at_every_call) {
    assert_every_call_may_fail(*state, EIO);
}

TEST(an_executor_meets_a_disk_that_cuts_at_every_call) {
    assert_every_call_may_fail(*state, IO_FAULT_CUT);
}

/* What the supervisor does with the file of an executor that runs, and died. */
static void supervise(const struct state_place *place) {
    const struct state_death death = {.kind = STATE_DEATH_SIGNAL, .native = 11};
    struct state *watched = NULL, *amended = NULL;
    struct error err;
    enum err code = state_watch(place->path, LIFE, &watched, &err);
    if (code == ERR_OK) code = state_look(watched, &err);
    (void)state_summary(watched);
    state_close(watched);
    code = state_amend(place->path, 0, &amended, &err);
    if (code != ERR_OK) return;
    state_record_death(amended, &death);
    code = state_save(amended, &err);
    state_close(amended);
}

TEST(no_fault_of_the_disk_is_the_end_of_the_supervisor) {
    static const int errors[] = {ENOSPC, EIO, IO_FAULT_CUT};
    struct state_place *place = *state;
    struct state *opened;
    struct error err;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        uint64_t seen = 1;
        for (uint64_t nth = 1; nth <= seen; nth++) {
            assert_int_equal(open_and_begin(place->path, &opened, &err), ERR_OK);
            state_close(opened);
            const struct io_faults faults = {.folder = place->folder,
                .calls = IO_CALLS_ALL,
                .nth = nth,
                .is_once = true,
                .error = errors[i]};
            io_faults_arm(&faults);
            supervise(place);
            seen = io_faults_seen();
            io_faults_arm(NULL);
        }
    }
}

TEST(a_file_that_is_cut_while_it_is_watched_is_an_error) {
    struct state_place *place = *state;
    struct state *opened, *watched;
    struct error err;
    assert_int_equal(open_and_begin(place->path, &opened, &err), ERR_OK);
    assert_int_equal(state_watch(place->path, LIFE, &watched, &err), ERR_OK);
    state_count(opened, 3, 0);
    assert_int_equal(state_look(watched, &err), ERR_OK);
    assert_return_code(truncate(place->path, 100), errno);
    assert_int_equal(state_look(watched, &err), ERR_IO);
    (void)state_summary(watched); /* SIGBUS, where it is the file that is mapped */
    state_close(watched);
    state_close(opened);
}

#define F(name) cmocka_unit_test_setup_teardown(name, state_place_set_up, tear_down)
RUN_TESTS(F(a_full_disk_is_an_error_before_the_first_store),
    F(what_was_allocated_serves_the_next_life_on_a_full_disk),
    F(an_executor_meets_a_disk_without_room_at_every_call),
    F(an_executor_meets_a_disk_that_fails_at_every_call),
    F(an_executor_meets_a_disk_that_cuts_at_every_call),
    F(no_fault_of_the_disk_is_the_end_of_the_supervisor),
    F(a_file_that_is_cut_while_it_is_watched_is_an_error))

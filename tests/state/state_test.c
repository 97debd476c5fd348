#include "state/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/state_rig.h"
#include "testing.h"

enum { SECOND_NS = 1000000000, LEFT_MAX = 64, FUZZ_ROUNDS = 3000 };

static const struct state_shape small = {.lanes = 3, .depth = 2, .batch_jobs = 4};

/* `state` names the struct here. */
#define STATE_TEST(name) static void name(void **test)

#define S(name) cmocka_unit_test_setup_teardown(name, state_place_set_up, state_place_tear_down)

/* Must open; the code of why a file was set aside. */
static struct state *open_state(const struct state_place *place, enum err *set_aside) {
    struct state *state;
    struct error aside, err;
    enum err code = state_open(place->path, 0, &state, &aside, &err);
    if (code != ERR_OK) print_message("%s\n", err.message);
    assert_int_equal(code, ERR_OK);
    *set_aside = aside.code;
    return state;
}

static struct state *reopen(const struct state_place *place) {
    enum err set_aside;
    struct state *state = open_state(place, &set_aside);
    assert_int_equal(set_aside, ERR_OK);
    return state;
}

static void begin(struct state *state, const struct state_shape *shape) {
    struct error err;
    assert_int_equal(state_begin(state, shape, 0, "GPU-1", &err), ERR_OK);
}

static struct position at(const char *topic, int64_t offset) {
    return (struct position){.topic = topic, .partition = 1, .offset = offset};
}

struct left {
    size_t count;
    struct state_left items[LEFT_MAX];
};

static void keep_left(void *context, const struct state_left *item) {
    struct left *left = context;
    assert_true(left->count < LEFT_MAX);
    left->items[left->count++] = *item;
}

static struct left left_in(const struct state *state) {
    struct left left = {0};
    state_each_left(state, keep_left, &left);
    return left;
}

static void launch(
    struct state *state, uint32_t lane, uint32_t slot, uint64_t id, uint64_t limit_ns) {
    for (uint32_t i = 0; i < 2; i++) {
        struct position position = at("jobs", (int64_t)(10 * id + i));
        state_note_job(state, lane, slot, i, &position, 3);
    }
    state_launch(state, lane, slot, 2, id, limit_ns);
}

STATE_TEST(a_new_file_is_the_owners_alone_and_holds_nothing) {
    struct state *state = reopen(*test);
    struct stat file;
    assert_int_equal(stat(((struct state_place *)*test)->path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(left_in(state).count, 0);
    assert_int_equal(state_death(state).kind, STATE_DEATH_NONE);
    assert_int_equal(state_summary(state).life, 0);
    state_close(state);
}

STATE_TEST(what_was_in_hand_is_found_after_the_process_is_gone) {
    struct state *state = reopen(*test);
    begin(state, &small);
    struct position position = at("decoding", 7);
    state_enter(state, &position, 1);
    launch(state, 2, 1, 5, 0);
    state_close(state);

    state = reopen(*test);
    struct left left = left_in(state);
    assert_int_equal(left.count, 3);
    assert_false(left.items[0].is_on_device);
    assert_string_equal(left.items[0].position.topic, "decoding");
    assert_int_equal(left.items[0].position.offset, 7);
    assert_true(left.items[2].is_on_device);
    assert_string_equal(left.items[2].position.topic, "jobs");
    assert_int_equal(left.items[2].position.partition, 1);
    assert_int_equal(left.items[2].position.offset, 51);
    assert_int_equal(left.items[2].attempt, 3);
    assert_int_equal(left.items[2].lane, 2);
    assert_int_equal(left.items[2].batch, 5);
    assert_int_equal(left.items[2].batch_jobs, 2);
    begin(state, &small);
    assert_int_equal(left_in(state).count, 0);
    state_close(state);
}

STATE_TEST(what_is_over_is_not_left) {
    struct state *state = reopen(*test);
    begin(state, &small);
    struct position position = at("jobs", 7);
    state_enter(state, &position, 1);
    state_leave(state);
    launch(state, 0, 0, 1, 0);
    launch(state, 0, 1, 2, 0);
    state_fence(state, 0, 0);
    state_close(state);
    state = reopen(*test);
    assert_int_equal(left_in(state).count, 2);
    state_end(state);
    assert_int_equal(left_in(state).count, 0);
    state_close(state);
}

STATE_TEST(messages_of_a_broker_that_is_gone_are_forgotten) {
    struct state *state = reopen(*test);
    struct position position = at("jobs", 7);
    size_t capacity;
    begin(state, &small);
    launch(state, 0, 0, 1, 0);
    struct state_suspect *suspects = state_suspects(state, &capacity);
    suspects[1].standing = STATE_SUSPECT;
    assert_true(state_entry_of(state, &position, 1, &suspects[1].at));
    struct state_search *search = state_searches(state);
    search->use = STATE_SEARCH_ACTIVE;
    state_close(state);

    state = reopen(*test);
    state_forget(state);
    assert_int_equal(left_in(state).count, 0);
    suspects = state_suspects(state, &capacity);
    for (size_t i = 0; i < capacity; i++) assert_int_equal(suspects[i].standing, STATE_FREE);
    assert_int_equal(state_searches(state)->use, STATE_SEARCH_FREE);
    state_close(state);
    state_forget(NULL);
}

STATE_TEST(a_second_executor_is_refused) {
    struct state *state = reopen(*test), *second;
    struct error aside, err;
    const char *path = ((struct state_place *)*test)->path;
    assert_int_equal(state_open(path, 0, &second, &aside, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, path));
    state_close(state);
    state_close(reopen(*test));
}

STATE_TEST(another_shape_keeps_suspects_progress_and_sums) {
    struct state *state = reopen(*test);
    begin(state, &small);
    size_t capacity;
    struct state_suspect *suspects = state_suspects(state, &capacity);
    assert_true(capacity >= 3 * 2 * 4);
    struct position position = at("jobs", 9);
    assert_true(state_entry_of(state, &position, 2, &suspects[0].at));
    suspects[0].standing = STATE_SUSPECT;
    suspects[0].tries = 2;
    memset(state_progress(state), 0x5a, STATE_PROGRESS_BYTES);
    state_count(state, 5, 1);
    launch(state, 2, 1, 5, 0);
    state_close(state);

    state = reopen(*test);
    const struct state_shape large = {.lanes = 65, .depth = 16, .batch_jobs = 64};
    begin(state, &large);
    suspects = state_suspects(state, &capacity);
    assert_int_equal(capacity, STATE_SUSPECTS_MAX);
    assert_int_equal(suspects[0].tries, 2);
    assert_int_equal(suspects[0].at.offset, 9);
    assert_string_equal(state_topic(state, &suspects[0].at), "jobs");
    for (size_t i = 1; i < capacity; i++) assert_int_equal(suspects[i].standing, STATE_FREE);
    assert_int_equal(((uint8_t *)state_progress(state))[STATE_PROGRESS_BYTES - 1], 0x5a);
    assert_int_equal(state_summary(state).ok, 5);
    assert_int_equal(state_summary(state).errors, 1);
    assert_int_equal(left_in(state).count, 0);
    launch(state, 64, 15, 6, 0);
    assert_int_equal(left_in(state).count, 2);
    begin(state, &small); /* and back: the file stays as long as it was */
    assert_int_equal(left_in(state).count, 0);
    state_close(state);
    state_close(reopen(*test));
}

STATE_TEST(the_first_record_of_a_death_stays) {
    struct state *state = reopen(*test);
    begin(state, &small);
    const struct state_death sticky = {.kind = STATE_DEATH_STICKY,
        .code = ERR_GPU_ILLEGAL_ADDRESS,
        .native = 700,
        .lane = 1,
        .message = "an illegal address"};
    const struct state_death signal = {.kind = STATE_DEATH_SIGNAL, .native = 6};
    state_record_death(state, &sticky);
    state_record_death(state, &signal);
    state_close(state);
    state = reopen(*test);
    assert_int_equal(state_death(state).kind, STATE_DEATH_STICKY);
    assert_int_equal(state_death(state).native, 700);
    assert_string_equal(state_death(state).message, "an illegal address");
    begin(state, &small);
    assert_int_equal(state_death(state).kind, STATE_DEATH_NONE);
    state_close(state);
}

STATE_TEST(a_batch_is_overdue_from_the_fence_before_it) {
    struct state *state = reopen(*test);
    begin(state, &small);
    struct state_overdue overdue;
    uint64_t before_ns = clock_ns();
    launch(state, 1, 0, 4, 10ull * SECOND_NS);
    launch(state, 1, 1, 5, 20ull * SECOND_NS);
    launch(state, 2, 0, 6, 0); /* without a limit */
    uint64_t after_ns = clock_ns();
    assert_false(state_find_overdue(
        state, before_ns + 10ull * SECOND_NS, &(struct state_waits){0}, &overdue));
    assert_true(state_find_overdue(
        state, after_ns + 11ull * SECOND_NS, &(struct state_waits){0}, &overdue));
    assert_int_equal(overdue.lane, 1);
    assert_int_equal(overdue.batch, 4);
    assert_int_equal(overdue.limit_ns, 10ull * SECOND_NS);
    state_fence(state, 1, 0);
    uint64_t fence_ns = clock_ns();
    assert_false(state_find_overdue(
        state, after_ns + 20ull * SECOND_NS, &(struct state_waits){0}, &overdue));
    assert_true(state_find_overdue(
        state, fence_ns + 21ull * SECOND_NS, &(struct state_waits){0}, &overdue));
    assert_int_equal(overdue.batch, 5);
    state_close(state);
}

static void show_pulse(struct state *state, const char *name, uint32_t is_outside) {
    struct pulse *pulse = state_pulses(state);
    snprintf(pulse->name, sizeof pulse->name, "%s", name);
    pulse->is_outside = is_outside;
    pulse->busy_ns = SECOND_NS;
}

STATE_TEST(a_thread_that_hangs_is_evidence_unless_it_is_outside_or_holds_no_message) {
    static const struct {
        const char *name;
        uint32_t is_outside;
        bool is_evidence;
    } cases[] = {{"lane", 0, true}, {"lane", 1, false}, {"serial", 0, true}, {"fetch", 0, false},
        {"reload", 0, false}};
    struct state *state = reopen(*test);
    begin(state, &small);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct state_stall stall;
        show_pulse(state, cases[i].name, cases[i].is_outside);
        assert_false(state_find_stall(state, 2ull * SECOND_NS, SECOND_NS, &stall));
        assert_true(state_find_stall(state, 2ull * SECOND_NS + 1, SECOND_NS, &stall));
        assert_string_equal(stall.name, cases[i].name);
        assert_int_equal(stall.is_evidence, cases[i].is_evidence);
    }
    state_close(state);
}

STATE_TEST(a_watcher_sees_the_life_that_it_asks_for_when_it_looks) {
    struct state_place *place = *test;
    struct state *watched, *state = reopen(place);
    struct error err;
    state_name_life(state, 7);
    assert_int_equal(state_watch(place->path, 7, &watched, &err), ERR_IO);
    begin(state, &small);
    assert_int_equal(state_watch(place->path, 8, &watched, &err), ERR_IO);
    assert_int_equal(state_watch(place->path, 7, &watched, &err), ERR_OK);
    state_count(state, 3, 0);
    assert_int_equal(state_summary(watched).ok, 0);
    assert_int_equal(state_look(watched, &err), ERR_OK);
    assert_int_equal(state_summary(watched).ok, 3);
    assert_string_equal(state_summary(watched).uuid, "GPU-1");
    state_close(watched);
    state_close(state);
}

STATE_TEST(a_device_that_is_given_up_shows_until_an_executor_lives_on_it_again) {
    struct state *state = reopen(*test);
    begin(state, &small);
    assert_false(state_summary(state).is_unhealthy);
    state_set_fault(state, "it has fallen off the bus");
    state_close(state);
    state = reopen(*test);
    assert_true(state_summary(state).is_unhealthy);
    assert_string_equal(state_summary(state).fault, "it has fallen off the bus");
    begin(state, &small);
    assert_false(state_summary(state).is_unhealthy);
    state_close(state);
}

STATE_TEST(more_topics_than_there_is_room_for_are_not_noted) {
    struct state *state = reopen(*test);
    begin(state, &small);
    struct state_entry entry;
    char name[32];
    for (int i = 0; i < STATE_TOPICS_MAX; i++) {
        snprintf(name, sizeof name, "topic-%d", i);
        struct position position = at(name, i);
        assert_true(state_entry_of(state, &position, 1, &entry));
    }
    struct position beyond = at("one-more", 1);
    assert_false(state_entry_of(state, &beyond, 1, &entry));
    state_enter(state, &beyond, 1);
    state_note_job(state, 0, 0, 0, &beyond, 1);
    state_launch(state, 0, 0, 1, 1, 0);
    assert_int_equal(left_in(state).count, 0);
    state_close(state);
}

/* ---- files that are not to be trusted ---- */

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* A file with something of everything in it; to be freed. */
static uint8_t *write_full(const struct state_place *place, size_t *size) {
    struct state *state = reopen(place);
    begin(state, &small);
    struct position position = at("jobs", 9);
    state_enter(state, &position, 1);
    launch(state, 0, 0, 1, SECOND_NS);
    size_t capacity;
    struct state_suspect *suspects = state_suspects(state, &capacity);
    for (size_t i = 0; i < capacity; i++) {
        assert_true(state_entry_of(state, &position, 2, &suspects[i].at));
        suspects[i].standing = 1 + i % STATE_UNDECODABLE;
        suspects[i].code = ERR_GPU_HANG;
        memset(suspects[i].message, 'x', sizeof suspects[i].message);
    }
    const struct state_death death = {.kind = STATE_DEATH_HANG, .code = ERR_GPU_HANG};
    state_record_death(state, &death);
    state_close(state);

    struct stat file;
    assert_int_equal(stat(place->path, &file), 0);
    *size = (size_t)file.st_size;
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    int fd = open(place->path, O_RDONLY);
    assert_int_equal(read(fd, bytes, *size), *size);
    close(fd);
    return bytes;
}

/* Reads all that can be read, and writes as an executor would. */
static void use_everything(const struct state_place *place) {
    enum err set_aside;
    struct state *state = open_state(place, &set_aside);
    struct left left = left_in(state);
    for (size_t i = 0; i < left.count; i++) assert_true(strlen(left.items[i].position.topic) < 256);
    struct state_death death = state_death(state);
    assert_true(death.code < ERR_COUNT);
    assert_true(strlen(death.message) < STATE_MESSAGE_BYTES);
    size_t capacity;
    const struct state_suspect *suspects = state_suspects(state, &capacity);
    for (size_t i = 0; i < capacity; i++) {
        assert_true(suspects[i].standing <= STATE_UNDECODABLE);
        if (suspects[i].standing == STATE_FREE) continue;
        assert_non_null(state_topic(state, &suspects[i].at));
        assert_true(strlen(suspects[i].message) < STATE_MESSAGE_BYTES);
        if (suspects[i].standing >= STATE_CONVICTED) assert_true(suspects[i].code < ERR_COUNT);
    }
    struct state_overdue overdue;
    (void)!state_find_overdue(state, clock_ns(), &(struct state_waits){0}, &overdue);
    assert_true(strlen(state_summary(state).uuid) < STATE_UUID_BYTES);
    begin(state, &small);
    launch(state, 2, 1, 1, 0);
    state_close(state);
}

STATE_TEST(a_file_that_is_not_ours_is_set_aside) {
    struct state_place *place = *test;
    char aside_path[600];
    snprintf(aside_path, sizeof aside_path, "%s.damaged", place->path);
    size_t size;
    uint8_t *bytes = write_full(place, &size);
    static const size_t head_bytes = 56; /* all that the checksum speaks for */
    for (size_t i = 0; i < head_bytes; i++) {
        bytes[i] ^= 0x10;
        write_file(place->path, bytes, size);
        bytes[i] ^= 0x10;
        enum err set_aside;
        struct state *state = open_state(place, &set_aside);
        assert_int_equal(set_aside, ERR_BAD_MESSAGE);
        assert_int_equal(left_in(state).count, 0);
        state_close(state);
        struct stat file;
        assert_int_equal(stat(aside_path, &file), 0);
        assert_int_equal(file.st_size, size);
    }
    free(bytes);
}

STATE_TEST(a_cut_file_is_set_aside) {
    struct state_place *place = *test;
    size_t size;
    uint8_t *bytes = write_full(place, &size);
    const size_t sizes[] = {1, 55, 56, 4096, size / 2, size - 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        write_file(place->path, bytes, sizes[i]);
        enum err set_aside;
        state_close(open_state(place, &set_aside));
        assert_int_equal(set_aside, ERR_BAD_MESSAGE);
    }
    free(bytes);
}

STATE_TEST(random_damage_is_never_followed_out_of_bounds) {
    struct state_place *place = *test;
    size_t size;
    uint8_t *bytes = write_full(place, &size), *damaged = malloc(size);
    assert_non_null(damaged);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < FUZZ_ROUNDS; round++) {
        memcpy(damaged, bytes, size);
        for (int i = 0; i < 200; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            /* every other one behind the checksum, so that it is read at all */
            size_t from = round % 8 == 0 ? 0 : 56;
            damaged[from + random % (size - from)] = (uint8_t)(random >> 40);
        }
        write_file(place->path, damaged, size);
        use_everything(place);
    }
    free(damaged);
    free(bytes);
}

STATE_TEST(a_pipe_in_the_place_of_the_file_keeps_nobody_waiting) {
    struct state_place *place = *test;
    struct state *found = NULL;
    struct error err, set_aside;
    assert_return_code(mkfifo(place->path, 0600), 0);
    assert_int_equal(state_watch(place->path, 0, &found, &err), ERR_IO);
    assert_int_equal(state_touch(place->path, &found, &err), ERR_IO);
    assert_int_equal(state_open(place->path, 1000, &found, &set_aside, &err), ERR_IO);
    assert_null(found);
}

STATE_TEST(without_a_state_nothing_happens) {
    struct position position = at("jobs", 1);
    struct state_overdue overdue;
    struct error err;
    size_t capacity;
    assert_int_equal(state_begin(NULL, &small, 0, "", &err), ERR_OK);
    state_enter(NULL, &position, 1);
    state_leave(NULL);
    launch(NULL, 0, 0, 1, 0);
    state_fence(NULL, 0, 0);
    state_record_death(NULL, &(struct state_death){0});
    assert_int_equal(left_in(NULL).count, 0);
    assert_false(state_find_overdue(NULL, 1, &(struct state_waits){0}, &overdue));
    assert_null(state_suspects(NULL, &capacity));
    assert_int_equal(capacity, 0);
    state_end(NULL);
    state_close(NULL);
}

STATE_TEST(uneven_kernels_are_known_in_later_lives_and_the_oldest_is_forgotten_for_new_ones) {
    const struct state_place *place = *test;
    const struct slice program = slice_of_text("p");
    struct state *state = reopen(place);
    begin(state, &small);
    assert_false(state_has_unevens(state));
    assert_true(state_note_uneven(state, program, slice_of_text("first")));
    assert_false(state_note_uneven(state, program, slice_of_text("first")));
    state_close(state);
    state = reopen(place);
    begin(state, &small);
    assert_true(state_is_uneven(state, program, slice_of_text("first")));
    assert_false(state_is_uneven(state, program, slice_of_text("")));
    assert_false(state_is_uneven(state, slice_of_text("q"), slice_of_text("first")));
    for (int i = 0; i < STATE_UNEVENS_MAX; i++) {
        char name[24];
        snprintf(name, sizeof name, "entry%d", i);
        assert_true(state_note_uneven(state, program, slice_of_text(name)));
        assert_true(state_is_uneven(state, program, slice_of_text(name)));
    }
    assert_false(state_is_uneven(state, program, slice_of_text("first")));
    state_close(state);
}

RUN_TESTS(S(a_new_file_is_the_owners_alone_and_holds_nothing),
    S(what_was_in_hand_is_found_after_the_process_is_gone), S(what_is_over_is_not_left),
    S(messages_of_a_broker_that_is_gone_are_forgotten), S(a_second_executor_is_refused),
    S(another_shape_keeps_suspects_progress_and_sums), S(the_first_record_of_a_death_stays),
    S(a_batch_is_overdue_from_the_fence_before_it),
    S(a_thread_that_hangs_is_evidence_unless_it_is_outside_or_holds_no_message),
    S(a_watcher_sees_the_life_that_it_asks_for_when_it_looks),
    S(a_device_that_is_given_up_shows_until_an_executor_lives_on_it_again),
    S(more_topics_than_there_is_room_for_are_not_noted), S(a_file_that_is_not_ours_is_set_aside),
    S(a_cut_file_is_set_aside), S(random_damage_is_never_followed_out_of_bounds),
    S(a_pipe_in_the_place_of_the_file_keeps_nobody_waiting), T(without_a_state_nothing_happens),
    S(uneven_kernels_are_known_in_later_lives_and_the_oldest_is_forgotten_for_new_ones))

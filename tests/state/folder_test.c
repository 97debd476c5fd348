#include "state/folder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

enum { STARTERS = 4, ROUNDS = 400, PATH_SIZE = 128 };

struct starter {
    const char *folder;
    pthread_barrier_t *gate;
    enum err code;
    char name[STATE_INSTANCE_SIZE];
};

static void *start(void *opaque) {
    struct starter *starter = opaque;
    struct error err;
    pthread_barrier_wait(starter->gate);
    starter->code = state_folder_instance(starter->folder, starter->name, &err);
    return NULL;
}

/* All that start at the same time have one name, which is returned. */
static void start_together(const char *folder, char name[static STATE_INSTANCE_SIZE]) {
    pthread_barrier_t gate;
    pthread_t threads[STARTERS];
    struct starter starters[STARTERS];
    assert_int_equal(pthread_barrier_init(&gate, NULL, STARTERS), 0);
    for (int i = 0; i < STARTERS; i++) {
        starters[i] = (struct starter){.folder = folder, .gate = &gate};
        assert_int_equal(pthread_create(&threads[i], NULL, start, &starters[i]), 0);
    }
    for (int i = 0; i < STARTERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&gate);
    for (int i = 0; i < STARTERS; i++) {
        assert_int_equal(starters[i].code, ERR_OK);
        assert_string_equal(starters[i].name, starters[0].name);
    }
    memcpy(name, starters[0].name, STATE_INSTANCE_SIZE);
}

static void make_folder(char folder[static PATH_SIZE]) {
    snprintf(folder, PATH_SIZE, "/tmp/gpu-worker-folder-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void put_name(const char *folder, const char *text) {
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/instance", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static void remove_folder(const char *folder) {
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/instance", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
}

TEST(executors_that_start_at_once_in_a_new_folder_draw_one_name) {
    char folder[PATH_SIZE], name[STATE_INSTANCE_SIZE], again[STATE_INSTANCE_SIZE];
    for (int i = 0; i < ROUNDS; i++) {
        make_folder(folder);
        start_together(folder, name);
        start_together(folder, again);
        assert_string_equal(again, name);
        remove_folder(folder);
    }
}

TEST(what_is_no_name_is_replaced_once) {
    char folder[PATH_SIZE], name[STATE_INSTANCE_SIZE];
    for (int i = 0; i < ROUNDS; i++) {
        make_folder(folder);
        put_name(folder, "0123456789abcdeG");
        start_together(folder, name);
        assert_string_not_equal(name, "0123456789abcdeG");
        remove_folder(folder);
    }
}

TEST(a_pipe_in_the_place_of_the_name_keeps_nobody_waiting) {
    char folder[PATH_SIZE], path[PATH_SIZE + 16], name[STATE_INSTANCE_SIZE];
    struct error err;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/instance", folder);
    assert_return_code(mkfifo(path, 0600), 0);
    assert_int_equal(state_folder_instance(folder, name, &err), ERR_OK);
    remove_folder(folder);
}

TEST(a_folder_that_is_not_there_is_an_error) {
    struct error err;
    char name[STATE_INSTANCE_SIZE];
    assert_int_equal(state_folder_instance("/nowhere", name, &err), ERR_CONFIG);
    assert_string_equal(err.fix, "set state.dir to a folder on this machine that can be written");
}

RUN_TESTS(T(executors_that_start_at_once_in_a_new_folder_draw_one_name),
    T(what_is_no_name_is_replaced_once), T(a_pipe_in_the_place_of_the_name_keeps_nobody_waiting),
    T(a_folder_that_is_not_there_is_an_error))

/* Proves: the cache of modules. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

enum { JOBS = 100 };

static const char *const images[] = {FIRST_IMAGE, SECOND_IMAGE};
static char *folder;
static char digests[2][DIGEST_TEXT_SIZE];

static void name_images(void) {
    for (int i = 0; i < 2; i++) {
        char *bytes;
        size_t size;
        struct error err;
        assert_int_equal(file_read(images[i], 1 << 20, &bytes, &size, &err), ERR_OK);
        struct digest digest = digest_of(slice_of(bytes, size));
        digest_format(&digest, digests[i]);
        free(bytes);
    }
}

/* A program of two images for one device. */
static void write_program(void) {
    char path[256];
    snprintf(path, sizeof path, "%s/answer", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/answer/%d.so", folder, i);
        assert_int_equal(symlink(images[i], path), 0);
    }
    snprintf(path, sizeof path, "%s/answer/program.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("name: answer\n"
          "entries: [{name: answer, args: [{name: y, buffer: out}, {name: n, value: u32}]}]\n"
          "images: [{kind: cpu, file: 0.so}, {kind: cpu, file: 1.so}]\n",
        file);
    fclose(file);
}

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    folder = scratch_create();
    name_images();
    write_program();
    run_set_text(&run->settings.programs.dir, folder);
    return code;
}

static int tear_down(void **state) {
    scratch_remove(folder);
    return run_tear_down(state);
}

static void add(struct run *run, const char *id, const char *pin) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {y: {bytes: 4}}\n"
        "steps: [{program: \"answer%s%s\", args: [y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: y}]\n",
        id, pin != NULL ? "@" : "", pin != NULL ? pin : "");
    run_add_job(run, yaml);
}

static void expect(struct run *run, const char *id, uint32_t answer) {
    run_assert_output(run, id, 0, &answer, sizeof answer);
}

TEST(a_job_runs_the_image_that_it_pins_and_else_the_first) {
    struct run *run = *state;
    add(run, "any", NULL);
    add(run, "first", digests[0]);
    add(run, "second", digests[1]);
    run_execute_ok(run);
    expect(run, "any", 1);
    expect(run, "first", 1);
    expect(run, "second", 2);
}

TEST(an_image_that_many_jobs_pin_is_loaded_once_beside_the_one_that_is_there) {
    struct run *run = *state;
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        add(run, id, k % 2 == 0 ? digests[1] : NULL);
    }
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        expect(run, id, k % 2 == 0 ? 2 : 1);
    }
    assert_int_equal(cpu_driver_counters().calls[CPU_module_load], 2);
}

#define IMAGES(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        IMAGES(a_job_runs_the_image_that_it_pins_and_else_the_first),
        IMAGES(an_image_that_many_jobs_pin_is_loaded_once_beside_the_one_that_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The residents of a job: attached all or none, and let go as the job's run says. */
#include "prepare/attach.h"

#include <stdio.h>

#include "gpu/cpu_device.h"
#include "support/device_rig.h"
#include "support/jobs.h"
#include "testing.h"

static struct device_rig rig;
static struct error err;
static struct job *job;

static int set_up(void **state) {
    device_rig_init(&rig, NULL);
    job = NULL;
    return 0;
}

static void end_job(void) {
    if (job != NULL) detach_residents(rig.residents, job);
    job_destroy(job);
    job = NULL;
}

static int tear_down(void **state) {
    end_job();
    device_rig_fini(&rig);
    return 0;
}

/* The job at that offset of a key: theta += x, and whatever else it says. */
static enum err attach(int64_t offset, const char *theta, const char *more, const char *outputs) {
    char yaml[768];
    end_job();
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {x: {bytes: 8}, theta: {bytes: 8, resident: theta%s}%s}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, theta, {u32: 2}], elements: 2}]\n"
        "outputs: [%s]\n",
        theta, more, outputs);
    job = test_job(yaml);
    job->delivery->position.offset = offset;
    job->delivery->has_key = true;
    job->delivery->key = slice_of_text("key");
    job->plan = device_rig_plan(&rig, job);
    job->residents = arena_alloc(&job->arena, job->buffer_count, sizeof job->residents[0]);
    job->generations = arena_alloc(&job->arena, job->buffer_count, sizeof job->generations[0]);
    assert_non_null(job->generations);
    job->is_applied = true; /* of an attempt before: not looked at */
    job->run = RUN_DONE;
    job->init_bytes_uploaded = 77;
    return attach_residents(rig.residents, job, &err);
}

#define OUTPUT "{buffer: theta}"
#define INIT_FILL ", init: {fill: 1}"
#define INIT_DATA ", init: {data: {f32: [1, 2]}}"

/* The job ran so. */
static void end_as(enum run_state run) {
    job->run = run;
    end_job();
}

TEST(the_first_job_creates_its_resident_and_uploads_its_start_value) {
    assert_int_equal(attach(0, INIT_DATA, "", OUTPUT), ERR_OK);
    assert_null(job->residents[0]);
    assert_non_null(job->residents[1]);
    assert_true(resident_is_fresh(job->residents[1]));
    assert_int_equal(job->generations[1], 1);
    assert_int_equal(job->init_bytes_uploaded, 8);
    assert_false(job->is_applied);
    assert_int_equal(job->run, RUN_NONE);
}

TEST(a_start_value_that_is_filled_is_not_uploaded) {
    assert_int_equal(attach(0, INIT_FILL, "", OUTPUT), ERR_OK);
    assert_int_equal(job->init_bytes_uploaded, 0);
}

TEST(the_next_job_finds_what_the_first_left_and_uploads_nothing) {
    assert_int_equal(attach(0, INIT_DATA, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(1, INIT_DATA, "", OUTPUT), ERR_OK);
    assert_false(resident_is_fresh(job->residents[1]));
    assert_int_equal(job->generations[1], 2);
    assert_int_equal(job->init_bytes_uploaded, 0);
}

TEST(a_resident_that_no_job_created_is_the_senders_to_create) {
    assert_int_equal(attach(0, "", "", OUTPUT), ERR_RESIDENT_GONE);
    assert_null(job->residents[1]);
}

TEST(a_job_that_never_ran_leaves_the_resident_as_it_was) {
    assert_int_equal(attach(0, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(1, "", "", OUTPUT), ERR_OK);
    end_as(RUN_NONE);
    assert_int_equal(attach(1, ", expect: 1", "", OUTPUT), ERR_OK);
    assert_int_equal(job->generations[1], 2);
}

TEST(a_job_that_failed_on_its_way_takes_the_resident_with_it) {
    assert_int_equal(attach(0, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(1, "", "", OUTPUT), ERR_OK);
    end_as(RUN_STARTED);
    assert_int_equal(attach(2, "", "", OUTPUT), ERR_RESIDENT_GONE);
}

TEST(one_resident_that_cannot_be_had_gives_the_others_back_untouched) {
    assert_int_equal(attach(0, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(1, "", ", phi: {bytes: 8, resident: phi}", OUTPUT), ERR_RESIDENT_GONE);
    assert_null(job->residents[1]);
    assert_null(job->residents[2]);
    assert_int_equal(attach(1, ", expect: 1", "", OUTPUT), ERR_OK);
}

TEST(a_resident_at_another_generation_is_refused) {
    assert_int_equal(attach(0, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(1, ", expect: 2", "", OUTPUT), ERR_RESIDENT_GENERATION);
}

TEST(a_job_that_is_delivered_again_reads_what_it_left_and_changes_nothing) {
    assert_int_equal(attach(5, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(5, INIT_FILL, "", OUTPUT ", {buffer: x, bytes: 0, as: none}"), ERR_OK);
    assert_true(job->is_applied);
    assert_int_equal(job->generations[1], 1);
    end_as(RUN_STARTED); /* even where it failed: it launched nothing */
    assert_int_equal(attach(6, ", expect: 1", "", OUTPUT), ERR_OK);
    assert_false(job->is_applied);
}

TEST(a_job_that_is_delivered_again_cannot_give_what_it_computed_on_the_way) {
    assert_int_equal(attach(5, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(5, INIT_FILL, "", OUTPUT ", {buffer: x}"), ERR_RESIDENT_GENERATION);
    assert_non_null(strstr(err.message, "cannot compute again 'x'"));
    assert_null(job->residents[1]);
    assert_int_equal(attach(6, ", expect: 1", "", OUTPUT), ERR_OK);
}

/* phi is changed by its write. */
#define PHI(init) ", phi: {bytes: 8, resident: phi" init ", writes: [{offset: 0, data: {u8: [1]}}]}"

TEST(a_job_that_is_delivered_again_is_refused_where_one_of_its_updates_is_not_its_own_any_more) {
    assert_int_equal(attach(5, INIT_FILL, "", OUTPUT), ERR_OK);
    end_as(RUN_DONE);
    assert_int_equal(attach(5, INIT_FILL, PHI(INIT_FILL), OUTPUT), ERR_RESIDENT_GENERATION);
    assert_non_null(strstr(err.message, "nothing of it is left in the resident of 'phi'"));
}

#define A(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(A(the_first_job_creates_its_resident_and_uploads_its_start_value),
    A(a_start_value_that_is_filled_is_not_uploaded),
    A(the_next_job_finds_what_the_first_left_and_uploads_nothing),
    A(a_resident_that_no_job_created_is_the_senders_to_create),
    A(a_job_that_never_ran_leaves_the_resident_as_it_was),
    A(a_job_that_failed_on_its_way_takes_the_resident_with_it),
    A(one_resident_that_cannot_be_had_gives_the_others_back_untouched),
    A(a_resident_at_another_generation_is_refused),
    A(a_job_that_is_delivered_again_reads_what_it_left_and_changes_nothing),
    A(a_job_that_is_delivered_again_cannot_give_what_it_computed_on_the_way),
    A(a_job_that_is_delivered_again_is_refused_where_one_of_its_updates_is_not_its_own_any_more))

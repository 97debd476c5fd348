/* Who waits for whose static, and who wakes them. */
#include "prepare/providers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/device_rig.h"
#include "support/jobs.h"
#include "testing.h"

enum { JOBS_MAX = 8 };

static const float ones[] = {1, 1};
static struct providers *providers;
static struct digest digest;
static struct job *jobs[JOBS_MAX];
static size_t job_count;

static int set_up(void **state) {
    providers = providers_create();
    assert_non_null(providers);
    digest = digest_of(slice_of(ones, sizeof ones));
    job_count = 0;
    return 0;
}

static int tear_down(void **state) {
    for (size_t i = 0; i < job_count; i++) {
        assert_null(providers_end(providers, jobs[i], false));
        job_destroy(jobs[i]);
    }
    providers_destroy(providers);
    return 0;
}

/* A job that is taken now, and names the static in its second buffer; not decoded yet. */
static struct job *take(bool has_data) {
    char text[DIGEST_TEXT_SIZE], yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {y: {bytes: 8}, x: {bytes: 8, static: \"%s\"%s}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\noutputs: []\n",
        digest_format(&digest, text), has_data ? ", data: {f32: [1, 1]}" : "");
    struct job *job = jobs[job_count++] = test_job(yaml);
    job->statics = arena_alloc(&job->arena, job->buffer_count, sizeof job->statics[0]);
    assert_non_null(job->statics);
    providers_number(providers, job->delivery);
    return job;
}

static void end_decoding(struct job *job) {
    providers_add(providers, job);
    providers_decoded(providers, &job->delivery->number, 1);
}

static struct job *decoded(bool has_data) {
    struct job *job = take(has_data);
    end_decoding(job);
    return job;
}

static bool is_ahead(const struct job *job) {
    return providers_are_ahead(providers, job, &digest);
}

TEST(a_provider_is_ahead_of_jobs_that_were_taken_later_and_of_no_others) {
    struct job *before = decoded(false), *provider = decoded(true), *behind = decoded(false);
    assert_false(is_ahead(before));
    assert_false(is_ahead(provider)); /* not of itself */
    assert_true(is_ahead(behind));
    assert_false(providers_wait(providers, before, 1));
    const struct digest other = digest_of(slice_of_text("other"));
    assert_false(providers_are_ahead(providers, behind, &other));
}

TEST(a_provider_behind_another_provider_is_behind_it) {
    struct job *first = decoded(true), *second = decoded(true);
    assert_false(is_ahead(first));
    assert_true(is_ahead(second));
}

TEST(a_provider_that_is_decoded_late_is_ahead_all_the_same) {
    struct job *early = take(true), *late = take(true), *behind = take(false);
    end_decoding(late);
    end_decoding(behind);
    end_decoding(early);
    assert_true(is_ahead(late));
    assert_null(providers_end(providers, late, false));
    assert_true(is_ahead(behind));
    assert_null(providers_end(providers, early, false));
    assert_false(is_ahead(behind));
}

static void *look(void *job) {
    return is_ahead(job) ? job : NULL;
}

TEST(who_asks_waits_until_all_messages_ahead_are_decoded) {
    pthread_t thread;
    void *found;
    struct job *provider = take(true), *behind = take(false);
    end_decoding(behind);
    assert_int_equal(pthread_create(&thread, NULL, look, behind), 0);
    end_decoding(provider);
    pthread_join(thread, &found);
    assert_ptr_equal(found, behind);
}

TEST(messages_are_numbered_round_the_ring_of_those_that_are_not_decoded) {
    struct delivery delivery;
    for (size_t i = 0; i < 3 * PROVIDERS_UNDECODED_MAX + 5; i++) {
        providers_number(providers, &delivery);
        assert_int_equal(delivery.number, i);
        providers_decoded(providers, &delivery.number, 1);
    }
    (void)decoded(true);
    assert_true(is_ahead(decoded(false)));
}

TEST(a_payload_of_no_bytes_or_without_data_is_not_provided) {
    struct job *without = decoded(false);
    assert_null(without->provided);
    assert_null(providers_arrived(providers, NULL, without, 1));
    assert_false(is_ahead(decoded(false)));
}

TEST(the_end_of_the_provider_wakes_those_that_waited_for_it) {
    struct job *provider = decoded(true), *a = decoded(false), *b = decoded(false);
    assert_true(providers_wait(providers, a, 1));
    assert_true(providers_wait(providers, b, 1));
    assert_int_equal(a->awaited, 1);
    struct job *woken = providers_end(providers, provider, false);
    assert_non_null(woken);
    assert_non_null(woken->next_waiting);
    assert_null(woken->next_waiting->next_waiting);
    assert_ptr_not_equal(woken, woken->next_waiting);
    assert_null(a->statics[1]);
    assert_false(a->is_left || b->is_left);
    assert_false(is_ahead(a));
    assert_null(providers_end(providers, provider, false)); /* once */
}

TEST(the_end_of_a_provider_leaves_those_that_another_one_ahead_provides_for) {
    struct job *first = decoded(true), *between = decoded(false), *second = decoded(true),
               *behind = decoded(false);
    assert_true(providers_wait(providers, between, 1));
    assert_true(providers_wait(providers, behind, 1));
    assert_ptr_equal(providers_end(providers, first, false), between);
    assert_null(between->next_waiting);
    assert_ptr_equal(providers_end(providers, second, false), behind);
    assert_null(behind->next_waiting);
}

TEST(the_end_of_a_later_provider_wakes_nobody_while_the_first_still_provides) {
    struct job *first = decoded(true), *second = decoded(true), *behind = decoded(false);
    assert_true(providers_wait(providers, behind, 1));
    assert_null(providers_end(providers, second, false));
    assert_ptr_equal(providers_end(providers, first, false), behind);
}

TEST(where_the_provider_is_left_to_others_those_of_its_partition_are_left_too) {
    struct job *provider = decoded(true), *same = decoded(false), *partition = decoded(false),
               *topic = decoded(false);
    partition->delivery->position.partition = 1;
    topic->delivery->position.topic = "other";
    assert_true(providers_wait(providers, same, 1));
    assert_true(providers_wait(providers, partition, 1));
    assert_true(providers_wait(providers, topic, 1));
    assert_non_null(providers_end(providers, provider, true));
    assert_true(same->is_left);
    assert_false(partition->is_left);
    assert_false(topic->is_left);
}

TEST(those_that_still_wait_and_those_that_are_stranded_can_be_taken_once) {
    struct job *provider = decoded(true), *a = decoded(false), *b = decoded(false);
    assert_true(providers_wait(providers, a, 1));
    struct job *waiting = providers_take_waiting(providers);
    assert_ptr_equal(waiting, a);
    assert_null(a->next_waiting);
    assert_null(providers_take_waiting(providers));
    assert_null(providers_take_stranded(providers));
    providers_strand(providers, a);
    providers_strand(providers, b);
    struct job *stranded = providers_take_stranded(providers);
    assert_non_null(stranded);
    assert_non_null(stranded->next_waiting);
    assert_null(stranded->next_waiting->next_waiting);
    assert_null(providers_take_stranded(providers));
    assert_null(providers_end(providers, provider, false));
}

/* --- with a device --- */

static struct static_entry *upload(struct device_rig *rig) {
    const struct payload payload = {.bytes = slice_of(ones, sizeof ones)};
    struct static_entry *entry;
    struct error err;
    bool uploaded;
    assert_int_equal(
        statics_upload(rig->statics, &digest, &payload, &entry, &uploaded, &err), ERR_OK);
    return entry;
}

TEST(an_arrival_gives_each_of_those_that_waited_a_reference) {
    struct device_rig rig;
    device_rig_init(&rig, NULL);
    struct job *provider = decoded(true), *second = decoded(true), *a = decoded(false),
               *b = decoded(false);
    assert_true(providers_wait(providers, a, 1));
    assert_true(providers_wait(providers, b, 1));
    provider->statics[1] = upload(&rig);
    struct job *woken = providers_arrived(providers, rig.statics, provider, 1);
    assert_non_null(woken);
    assert_non_null(woken->next_waiting);
    assert_null(woken->next_waiting->next_waiting);
    assert_ptr_equal(a->statics[1], provider->statics[1]);
    assert_ptr_equal(b->statics[1], provider->statics[1]);
    assert_null(providers_arrived(providers, rig.statics, provider, 1)); /* it provides no more */
    assert_true(is_ahead(b)); /* the second still provides */
    statics_unref(rig.statics, provider->statics[1]);
    statics_unref(rig.statics, a->statics[1]);
    assert_false(device_rig_shed_static(&rig, &digest)); /* b holds it */
    statics_unref(rig.statics, b->statics[1]);
    assert_true(device_rig_shed_static(&rig, &digest));
    assert_null(providers_end(providers, second, false));
    device_rig_fini(&rig);
}

#define C(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(C(a_provider_is_ahead_of_jobs_that_were_taken_later_and_of_no_others),
    C(a_provider_behind_another_provider_is_behind_it),
    C(a_provider_that_is_decoded_late_is_ahead_all_the_same),
    C(who_asks_waits_until_all_messages_ahead_are_decoded),
    C(messages_are_numbered_round_the_ring_of_those_that_are_not_decoded),
    C(a_payload_of_no_bytes_or_without_data_is_not_provided),
    C(the_end_of_the_provider_wakes_those_that_waited_for_it),
    C(the_end_of_a_provider_leaves_those_that_another_one_ahead_provides_for),
    C(the_end_of_a_later_provider_wakes_nobody_while_the_first_still_provides),
    C(where_the_provider_is_left_to_others_those_of_its_partition_are_left_too),
    C(those_that_still_wait_and_those_that_are_stranded_can_be_taken_once),
    C(an_arrival_gives_each_of_those_that_waited_a_reference))

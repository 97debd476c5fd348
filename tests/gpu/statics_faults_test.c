/* Proves: null handles from the driver; no memory back before its fence; memory that is pinned
 * in place; failed uploads leave nothing; shutdown and loss give everything back. */
#include <stdio.h>

#include "gpu/statics_rig.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BYTES = 3 * MIB + 100, BUDGET = 32 * MIB };

/* Where the driver refuses: nothing of the upload is left, and the next one goes well. */
static void upload_fails_and_leaves_nothing(const char *faults, enum err expected) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    struct static_entry *other = rig_get(&rig, 1, 64 * KIB), *entry = NULL;
    check_bytes(&rig, other, 1, 64 * KIB, rig.lane.stream);
    uint64_t cached_bytes = statics_read_counts(rig.statics).cached_bytes;
    bool uploaded;
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, faults, &rig.err), &rig.err);
    enum err code = rig_upload(&rig, 2, BYTES, &entry, &uploaded);
    if (code != expected) fail_msg("%s: %s", faults, err_code(code));
    assert_int_equal(cpu_driver_counters().faults, 1);
    assert_false(rig_has(&rig, 2));
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, cached_bytes);
    size_t count;
    struct pool_usage usage;
    const struct pool_counters *counters = statics_device_counters(rig.statics, &count);
    must(pool_usage_sum(&(struct pool_books){counters, count}, 1, &usage, &rig.err), &rig.err);
    assert_int_equal(usage.live_bytes, cached_bytes);
    /* The driver gets the memory back at once: nothing may still be copied into it. */
    uint64_t freed_bytes;
    must(pool_clear(rig.device_pool, &rig.device_counters, &freed_bytes, &rig.err), &rig.err);

    entry = rig_get(&rig, 2, BYTES);
    check_bytes(&rig, entry, 2, BYTES, rig.lane.stream);
    statics_unref(rig.statics, entry);
    statics_unref(rig.statics, other);
    rig_close(&rig);
    cpu_driver_reset();
}

TEST(an_upload_that_fails_at_any_call_leaves_no_entry_and_no_allocation) {
    upload_fails_and_leaves_nothing("cuMemAlloc:null@1", ERR_DRIVER);
    upload_fails_and_leaves_nothing("cuMemAlloc:invalid_value@1", ERR_DRIVER);
    for (int call = 1; call <= 4; call++) {
        char faults[64];
        snprintf(faults, sizeof faults, "cuMemcpyHtoDAsync:invalid_value@%d", call);
        upload_fails_and_leaves_nothing(faults, ERR_DRIVER);
        snprintf(faults, sizeof faults, "cuEventRecord:invalid_value@%d", call);
        upload_fails_and_leaves_nothing(faults, ERR_DRIVER);
        snprintf(faults, sizeof faults, "cuEventSynchronize:invalid_value@%d", call);
        upload_fails_and_leaves_nothing(faults, ERR_DRIVER);
    }
}

TEST(memory_whose_fence_cannot_be_waited_for_is_given_back_once_the_stream_is_empty) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    statics_unref(rig.statics, rig_get(&rig, 1, 64 * KIB)); /* nobody waited for it */
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuEventSynchronize:invalid_value@1", &rig.err),
        &rig.err);
    (void)statics_shed(rig.statics, &rig.device_counters, UINT64_MAX);
    assert_int_equal(cpu_driver_counters().faults, 1);
    rig_close(&rig);
}

TEST(memory_that_the_driver_had_not_a_moment_ago_is_asked_for_again_after_shedding) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    statics_unref(rig.statics, rig_get(&rig, 1, 64 * KIB));
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuMemAlloc:out_of_memory@1", &rig.err),
        &rig.err);
    statics_unref(rig.statics, rig_get(&rig, 2, BYTES));
    assert_false(rig_has(&rig, 1));
    assert_true(rig_has(&rig, 2));
    rig_close(&rig);
}

TEST(without_any_memory_an_upload_is_a_shortage_and_leaves_nothing) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuMemAlloc:out_of_memory@*", &rig.err),
        &rig.err);
    struct static_entry *entry = NULL;
    bool uploaded;
    assert_int_equal(rig_upload(&rig, 1, BYTES, &entry, &uploaded), ERR_DEVICE_MEMORY);
    assert_null(entry);
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, 0);
    rig_close(&rig);
}

enum { THREADS = 8 };

struct caller {
    struct rig *rig;
    enum err code;
    bool uploaded;
    pthread_t thread;
};

static void *call(void *context) {
    struct caller *caller = context;
    struct error err;
    uint8_t *bytes = malloc(64 * KIB);
    assert_non_null(bytes);
    must(device_bind(&caller->rig->device, &err), &err);
    struct digest digest = digest_of_number(5);
    const struct payload payload = {.bytes = payload_fill(bytes, 5, 64 * KIB)};
    struct static_entry *entry;
    caller->code =
        statics_upload(caller->rig->statics, &digest, &payload, &entry, &caller->uploaded, &err);
    if (caller->code == ERR_OK) statics_unref(caller->rig->statics, entry);
    free(bytes);
    return NULL;
}

TEST(those_who_waited_for_an_upload_that_failed_try_themselves) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES,
             "cuMemcpyHtoDAsync:invalid_value@1;cuMemcpyHtoDAsync:invalid_value@2", &rig.err),
        &rig.err);
    struct caller callers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.rig = &rig};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    unsigned failures = 0, uploads = 0;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        failures += callers[i].code != ERR_OK;
        uploads += callers[i].code == ERR_OK && callers[i].uploaded;
    }
    assert_int_equal(failures, 2); /* each of its own attempt */
    assert_int_equal(uploads, 1);
    struct static_entry *entry = rig_find(&rig, 5);
    assert_non_null(entry);
    check_bytes(&rig, entry, 5, 64 * KIB, rig.lane.stream);
    statics_unref(rig.statics, entry);
    rig_close(&rig);
}

TEST(statics_that_cannot_start_leave_nothing) {
    static const char *const faults[] = {"cuStreamCreate:invalid_value@1", "cuStreamCreate:null@1",
        "cuMemHostAlloc:out_of_memory@2", "cuMemHostAlloc:null@1", "cuEventCreate:invalid_value@1",
        "cuEventCreate:null@2"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct rig rig;
        rig_prepare(&rig, faults[i]);
        const struct statics_options options = rig_options(&rig, BUDGET);
        assert_int_not_equal(statics_create(&options, &rig.statics, &rig.err), ERR_OK);
        assert_null(rig.statics);
        rig_close(&rig);
        cpu_driver_reset();
    }
}

TEST(a_mapping_that_the_driver_does_not_register_is_staged) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuMemHostRegister:not_supported@1", &rig.err),
        &rig.err);
    struct digest digest = digest_of_number(1);
    const struct payload payload = {
        .bytes = payload_fill(rig.bytes, 1, 5 * MIB), .is_shared_mapping = true};
    struct static_entry *entry;
    bool uploaded;
    must(statics_upload(rig.statics, &digest, &payload, &entry, &uploaded, &rig.err), &rig.err);
    assert_int_equal(cpu_driver_counters().calls[CPU_host_register], 1);
    assert_int_equal(cpu_driver_counters().calls[CPU_host_unregister], 0);
    check_bytes(&rig, entry, 1, 5 * MIB, rig.lane.stream);
    statics_unref(rig.statics, entry);
    rig_close(&rig);
}

TEST(an_upload_that_fails_from_registered_memory_leaves_it_unregistered) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuMemcpyHtoDAsync:invalid_value@1", &rig.err),
        &rig.err);
    struct digest digest = digest_of_number(1);
    const struct payload payload = {
        .bytes = payload_fill(rig.bytes, 1, 5 * MIB), .is_shared_mapping = true};
    struct static_entry *entry;
    bool uploaded;
    assert_int_equal(
        statics_upload(rig.statics, &digest, &payload, &entry, &uploaded, &rig.err), ERR_DRIVER);
    assert_int_equal(cpu_driver_counters().registered_bytes_live, 0);
    rig_close(&rig);
}

TEST(a_lost_context_is_an_error_for_everybody_and_its_memory_is_not_used_again) {
    struct rig rig;
    rig_open(&rig, BUDGET);
    statics_unref(rig.statics, rig_get(&rig, 1, 64 * KIB));
    uint64_t charged = budget_charged(&rig.device_budget);
    must(cpu_driver_configure(1, CPU_DEVICE_BYTES, "cuMemcpyHtoDAsync:illegal_address@1", &rig.err),
        &rig.err);
    struct static_entry *entry;
    bool uploaded;
    assert_int_equal(rig_upload(&rig, 2, BYTES, &entry, &uploaded), ERR_GPU_ILLEGAL_ADDRESS);
    assert_true(budget_charged(&rig.device_budget) > charged);
    /* Nothing of it can be given back: only that the end of the process is reached counts. */
    statics_destroy(rig.statics);
    lease_pool_destroy(rig.leases);
    pool_destroy(rig.pinned_pool, &rig.pinned_counters);
    pool_destroy(rig.device_pool, &rig.device_counters);
    assert_true(budget_charged(&rig.device_budget) > 0);
    device_close(&rig.device);
    free(rig.bytes);
}

RUN_TESTS(D(an_upload_that_fails_at_any_call_leaves_no_entry_and_no_allocation),
    D(memory_whose_fence_cannot_be_waited_for_is_given_back_once_the_stream_is_empty),
    D(memory_that_the_driver_had_not_a_moment_ago_is_asked_for_again_after_shedding),
    D(without_any_memory_an_upload_is_a_shortage_and_leaves_nothing),
    D(those_who_waited_for_an_upload_that_failed_try_themselves),
    D(statics_that_cannot_start_leave_nothing),
    D(a_mapping_that_the_driver_does_not_register_is_staged),
    D(an_upload_that_fails_from_registered_memory_leaves_it_unregistered),
    D(a_lost_context_is_an_error_for_everybody_and_its_memory_is_not_used_again))

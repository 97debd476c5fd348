/* Tenants of slabs: who may be inside together, and what the next one finds. */
#include "batch/tenancy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cpu_device.h"
#include "gpu/event.h"
#include "testing.h"

enum { SLAB_BYTES = 4096, THREADS = 4, ROUNDS = 200 };

static struct device device;
static struct lease_pool *leases;
static struct tenancy *tenancy;
static struct stream_lease lease;
static struct device_block device_slab;
static struct pinned_block upload, readback;
static struct tenancy_slabs slabs;
static struct error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != ERR_OK) fail_msg("%s", err.message);                                         \
    } while (0)

static struct pool_block block_of(const struct pinned_block *pinned) {
    return (struct pool_block){.address = (uintptr_t)pinned->data, .bytes = pinned->bytes};
}

static void open_slabs(const char *faults) {
    cpu_device_open(&device, faults);
    OK(lease_pool_create(&device, &leases, &err));
    OK(tenancy_create(&device, leases, &tenancy, &err));
    OK(stream_lease_take(leases, false, &lease, &err));
    OK(device_block_alloc(&device, SLAB_BYTES, &device_slab, &err));
    OK(pinned_block_alloc(&device, SLAB_BYTES, &upload, &err));
    OK(pinned_block_alloc(&device, SLAB_BYTES, &readback, &err));
    slabs = (struct tenancy_slabs){
        .device.block = {.address = device_slab.address, .bytes = SLAB_BYTES},
        .upload.block = block_of(&upload),
        .readback.block = block_of(&readback)};
    tenancy_add(tenancy, &slabs);
}

static void close_slabs(void) {
    tenancy_remove(tenancy, &slabs);
    pinned_block_free(&device, &readback);
    pinned_block_free(&device, &upload);
    device_block_free(&device, &device_slab);
    OK(stream_lease_release(leases, &lease, &err));
    tenancy_destroy(tenancy);
    lease_pool_destroy(leases);
    device_close(&device);
}

/* As a batch does that uses all of the slabs. */
static void use_slabs(void) {
    memset(upload.data, 0x5e, SLAB_BYTES);
    memset(readback.data, 0x5e, SLAB_BYTES);
    OK(GPU_TRY(device.driver,
        copy_to_device(device_slab.address, upload.data, SLAB_BYTES, lease.stream), &err));
    OK(stream_wait(&device, lease.stream, &err));
    slabs.device.bytes = slabs.upload.bytes = slabs.readback.bytes = SLAB_BYTES;
}

static bool is_zero(const uint8_t *data) {
    return data[0] == 0 && memcmp(data, data + 1, SLAB_BYTES - 1) == 0;
}

static bool device_is_zero(void) {
    static uint8_t copy[SLAB_BYTES];
    OK(GPU_TRY(
        device.driver, copy_to_host(copy, device_slab.address, SLAB_BYTES, lease.stream), &err));
    OK(stream_wait(&device, lease.stream, &err));
    return is_zero(copy);
}

static enum err enter(const char *tenant) {
    return tenancy_enter(tenancy, slice_of_text(tenant), lease.stream, &err);
}

static bool try_to_enter(const char *tenant) {
    bool has_entered;
    OK(tenancy_try_enter(tenancy, slice_of_text(tenant), lease.stream, &has_entered, &err));
    return has_entered;
}

TEST(another_tenant_finds_every_slab_wiped) {
    open_slabs(NULL);
    OK(enter("one"));
    use_slabs();
    tenancy_leave(tenancy);
    OK(enter("other"));
    assert_true(is_zero(upload.data));
    assert_true(is_zero(readback.data));
    assert_true(device_is_zero());
    tenancy_leave(tenancy);
    close_slabs();
}

TEST(the_same_tenant_has_nothing_wiped) {
    open_slabs(NULL);
    OK(enter("one"));
    use_slabs();
    tenancy_leave(tenancy);
    uint64_t fills = cpu_driver_counters().calls[CPU_fill];
    OK(enter("one"));
    assert_int_equal(upload.data[0], 0x5e);
    assert_int_equal(cpu_driver_counters().calls[CPU_fill], fills);
    tenancy_leave(tenancy);
    close_slabs();
}

TEST(tenants_are_told_apart_by_all_of_their_names) {
    open_slabs(NULL);
    OK(enter("one"));
    assert_true(try_to_enter("one"));
    assert_false(try_to_enter("on"));
    assert_false(try_to_enter("one "));
    assert_false(try_to_enter(""));
    tenancy_leave(tenancy);
    assert_false(try_to_enter("other"));
    tenancy_leave(tenancy);
    assert_true(try_to_enter("other"));
    tenancy_leave(tenancy);
    close_slabs();
}

TEST(who_cannot_be_wiped_for_does_not_enter_and_tries_again) {
    open_slabs("cuMemsetD8Async:invalid_value@1");
    OK(enter("one"));
    use_slabs();
    tenancy_leave(tenancy);
    assert_int_not_equal(enter("other"), ERR_OK);
    OK(enter("other"));
    assert_true(device_is_zero());
    tenancy_leave(tenancy);
    close_slabs();
}

TEST(a_wipe_that_cannot_be_marked_is_waited_for) {
    open_slabs("cuEventRecord:invalid_value@1");
    OK(enter("one"));
    use_slabs();
    tenancy_leave(tenancy);
    uint64_t waits = cpu_driver_counters().calls[CPU_stream_synchronize];
    OK(enter("other"));
    assert_int_equal(cpu_driver_counters().calls[CPU_stream_synchronize], waits + 1);
    assert_true(device_is_zero());
    tenancy_leave(tenancy);
    close_slabs();
}

TEST(who_can_neither_mark_a_wipe_nor_wait_for_it_does_not_enter) {
    open_slabs("cuEventRecord:invalid_value@1;cuStreamSynchronize:invalid_value@2;"
               "cuStreamSynchronize:invalid_value@3");
    OK(enter("one"));
    use_slabs(); /* waits once */
    tenancy_leave(tenancy);
    assert_int_equal(enter("other"), ERR_GPU_FAULT); /* what waits is tried twice */
    close_slabs();
}

static atomic_int inside[2];
static atomic_int met;

static void *come_and_go(void *argument) {
    const size_t tenant = *(const size_t *)argument;
    struct error thread_err;
    if (device_bind(&device, &thread_err) != ERR_OK) abort();
    for (int i = 0; i < ROUNDS; i++) {
        const struct slice name = slice_of_text(tenant == 0 ? "one" : "other");
        if (tenancy_enter(tenancy, name, lease.stream, &thread_err) != ERR_OK) abort();
        atomic_fetch_add(&inside[tenant], 1);
        if (atomic_load(&inside[1 - tenant]) > 0) atomic_fetch_add(&met, 1);
        atomic_fetch_sub(&inside[tenant], 1);
        tenancy_leave(tenancy);
    }
    return NULL;
}

TEST(two_tenants_are_never_inside_together) {
    static const size_t tenants[THREADS] = {0, 1, 0, 1};
    pthread_t threads[THREADS];
    open_slabs(NULL);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, come_and_go, (void *)(uintptr_t)&tenants[i]), 0);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(met, 0);
    close_slabs();
}

TEST(without_a_tenancy_everybody_enters) {
    bool has_entered = false;
    assert_int_equal(
        tenancy_try_enter(NULL, slice_of_text("one"), NULL, &has_entered, &err), ERR_OK);
    assert_true(has_entered);
    assert_int_equal(tenancy_enter(NULL, slice_of_text("other"), NULL, &err), ERR_OK);
    tenancy_leave(NULL);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        D(another_tenant_finds_every_slab_wiped),
        D(the_same_tenant_has_nothing_wiped),
        D(tenants_are_told_apart_by_all_of_their_names),
        D(who_cannot_be_wiped_for_does_not_enter_and_tries_again),
        D(a_wipe_that_cannot_be_marked_is_waited_for),
        D(who_can_neither_mark_a_wipe_nor_wait_for_it_does_not_enter),
        D(two_tenants_are_never_inside_together),
        D(without_a_tenancy_everybody_enters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Proves: residents; memory of residents; shutdown and loss give everything back; buffers of no
 * bytes. */
#include "gpu/residents.h"

#include <stdio.h>

#include "cpu_device.h"

enum { IDLE_NS = 1000, JOBS_POOL_BYTES = 1 << 20, MEBIBYTE = 1 << 20, KEY_ENTRIES_MAX = 50 };

struct rig {
    struct device device;
    struct budget budget, pinned_budget;
    struct pool *pool, *pinned_pool;
    struct lease_pool *leases;
    struct statics *statics;
    struct pool_counters counters, pinned_counters;
    struct residents *residents;
    struct error err;
};

static void rig_init(struct rig *rig, const char *faults) {
    *rig = (struct rig){0};
    cpu_device_open(&rig->device, faults);
    budget_init(&rig->budget, "device pool", ERR_DEVICE_MEMORY, JOBS_POOL_BYTES);
    assert_int_equal(
        pool_create(&rig->device, POOL_DEVICE, &rig->budget, &rig->pool, &rig->err), ERR_OK);
    budget_init(&rig->pinned_budget, "pinned pool", ERR_NO_MEMORY, JOBS_POOL_BYTES);
    assert_int_equal(
        pool_create(&rig->device, POOL_PINNED, &rig->pinned_budget, &rig->pinned_pool, &rig->err),
        ERR_OK);
    assert_int_equal(lease_pool_create(&rig->device, &rig->leases, &rig->err), ERR_OK);
    const struct statics_options statics = {.device = &rig->device,
        .leases = rig->leases,
        .device_pool = rig->pool,
        .pinned_pool = rig->pinned_pool,
        .budget_bytes = CPU_DEVICE_BYTES,
        .entries_max = 1000,
        .staging_count = 1};
    assert_int_equal(statics_create(&statics, &rig->statics, &rig->err), ERR_OK);
    const struct residents_options options = {.device = &rig->device,
        .pool = rig->pool,
        .statics = rig->statics,
        .budget = &rig->budget,
        .idle_ns = IDLE_NS,
        .bytes_max = CPU_DEVICE_BYTES / 2,
        .key_bytes_max = CPU_DEVICE_BYTES / 4,
        .entries_max = 100,
        .key_entries_max = KEY_ENTRIES_MAX};
    assert_int_equal(residents_create(&options, &rig->residents, &rig->err), ERR_OK);
}

static void rig_fini(struct rig *rig) {
    residents_destroy(rig->residents);
    assert_int_equal(budget_limit(&rig->budget), JOBS_POOL_BYTES);
    statics_destroy(rig->statics);
    lease_pool_destroy(rig->leases);
    pool_destroy(rig->pinned_pool, &rig->pinned_counters);
    pool_destroy(rig->pool, &rig->counters);
    assert_int_equal(budget_charged(&rig->budget), 0);
    assert_int_equal(cpu_driver_counters().allocations_live, 0);
    device_close(&rig->device);
}

/* A use that creates and updates; tests change what they are about. */
static struct resident_use use(const char *name, uint64_t bytes, int64_t offset) {
    return (struct resident_use){.topic = "jobs",
        .key = slice_of_text("k"),
        .name = slice_of_text(name),
        .bytes = bytes,
        .can_create = true,
        .is_update = true,
        .offset = offset,
        .received_ns = 10};
}

static struct resident *attach(struct rig *rig, const struct resident_use *use, uint64_t now_ns) {
    struct resident *resident = NULL;
    enum err code = residents_attach(rig->residents, use, now_ns, &resident, &rig->err);
    if (code != ERR_OK) print_message("%s\n", rig->err.message);
    assert_int_equal(code, ERR_OK);
    return resident;
}

static void assert_refused(
    struct rig *rig, const struct resident_use *use, uint64_t now_ns, enum err code) {
    struct resident *resident;
    assert_int_equal(residents_attach(rig->residents, use, now_ns, &resident, &rig->err), code);
    assert_int_equal(rig->err.code, code);
    assert_true(rig->err.fix[0] != 0);
}

static void apply(struct rig *rig, const struct resident_use *use, uint64_t now_ns) {
    residents_detach(rig->residents, attach(rig, use, now_ns), RESIDENT_APPLIED, now_ns);
}

TEST(a_generation_counts_updates_and_not_reads) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 100, 0);
    struct resident *resident = attach(&rig, &one, 1);
    assert_true(resident_is_fresh(resident));
    assert_int_equal(resident_generation_after(resident), 1);
    assert_int_not_equal(resident_address(resident), 0);
    CUdeviceptr address = resident_address(resident);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 1);

    one.offset = 1;
    one.is_update = false;
    resident = attach(&rig, &one, 2);
    assert_false(resident_is_fresh(resident));
    assert_int_equal(resident_generation_after(resident), 1);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 2);

    one.offset = 2;
    one.is_update = true;
    resident = attach(&rig, &one, 3);
    assert_int_equal(resident_address(resident), address);
    assert_int_equal(resident_generation_after(resident), 2);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 3);
    rig_fini(&rig);
}

TEST(the_last_update_is_known_again_and_an_earlier_one_is_refused) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use first = use("w", 100, 5), second = use("w", 100, 9);
    second.has_expect = true;
    second.expect = 1;
    apply(&rig, &first, 1);
    apply(&rig, &second, 1);
    /* The job expects what it found then, which is not what is there now. */
    struct resident *resident = attach(&rig, &second, 1);
    assert_true(resident_has_applied(resident));
    assert_int_equal(resident_generation_after(resident), 2);
    residents_detach(rig.residents, resident, RESIDENT_UNTOUCHED, 1);
    assert_refused(&rig, &first, 1, ERR_RESIDENT_GENERATION);
    first.is_update = false; /* who only reads may come as often as it likes */
    apply(&rig, &first, 1);
    rig_fini(&rig);
}

TEST(an_attempt_that_never_ran_is_no_update) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use first = use("w", 100, 0), second = use("w", 100, 1);
    residents_detach(rig.residents, attach(&rig, &first, 1), RESIDENT_UNTOUCHED, 1);
    assert_int_equal(residents_read_counts(rig.residents).count, 0);
    apply(&rig, &first, 1);
    residents_detach(rig.residents, attach(&rig, &second, 1), RESIDENT_UNTOUCHED, 1);
    struct resident *resident = attach(&rig, &second, 1);
    assert_false(resident_has_applied(resident));
    assert_int_equal(resident_generation_after(resident), 2);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 1);
    rig_fini(&rig);
}

TEST(an_update_that_failed_drops_and_a_read_that_failed_does_not) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 100, 0);
    apply(&rig, &one, 1);
    one.offset = 1;
    one.can_create = one.is_update = false;
    residents_detach(rig.residents, attach(&rig, &one, 1), RESIDENT_SPOILT, 1);
    one.is_update = true;
    residents_detach(rig.residents, attach(&rig, &one, 1), RESIDENT_SPOILT, 1);
    assert_refused(&rig, &one, 1, ERR_RESIDENT_GONE);
    assert_int_equal(residents_read_counts(rig.residents).bytes, 0);
    rig_fini(&rig);
}

TEST(size_and_generation_must_be_those_that_the_job_says) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 100, 0);
    apply(&rig, &one, 1);
    one.offset = 1;
    one.bytes = 101;
    assert_refused(&rig, &one, 1, ERR_RESIDENT_SIZE);
    one.bytes = 100;
    one.has_expect = true;
    assert_refused(&rig, &one, 1, ERR_RESIDENT_GENERATION);
    one.expect = 1;
    apply(&rig, &one, 1);
    struct resident_use other = use("v", 100, 2);
    other.has_expect = true;
    other.expect = 1;
    assert_refused(&rig, &other, 1, ERR_RESIDENT_GONE);
    assert_non_null(strstr(rig.err.fix, "leave out `expect`")); /* it has `init` already */
    other.expect = 0;
    apply(&rig, &other, 1);
    rig_fini(&rig);
}

TEST(names_count_within_topic_partition_and_key) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use uses[6];
    for (int i = 0; i < 6; i++) uses[i] = use("w", 100, 0);
    uses[1].topic = "others";
    uses[2].partition = 1;
    uses[3].key = slice_of_text("");
    uses[4].name = slice_of_text("ww");
    uses[5].key = slice_of_text("kw");
    for (int i = 0; i < 6; i++) apply(&rig, &uses[i], 1);
    assert_int_equal(residents_read_counts(rig.residents).count, 6);
    rig_fini(&rig);
}

TEST(what_is_idle_for_too_long_is_dropped_and_what_is_in_use_is_not) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use old = use("old", 100, 0), used = use("used", 100, 0),
                        held = use("held", 100, 0), next = use("next", 100, 1);
    apply(&rig, &old, 100);
    apply(&rig, &used, 100);
    struct resident *resident = attach(&rig, &held, 100);
    used.offset = 1;
    apply(&rig, &used, 500);
    apply(&rig, &next, 100 + IDLE_NS + 1);
    assert_int_equal(residents_read_counts(rig.residents).count, 3);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 200);
    old.can_create = used.can_create = false;
    old.offset = used.offset = 2;
    assert_refused(&rig, &old, 100 + IDLE_NS + 1, ERR_RESIDENT_GONE);
    apply(&rig, &used, 100 + IDLE_NS + 1);
    rig_fini(&rig);
}

TEST(a_revoked_partition_loses_its_residents_and_jobs_from_before_make_none) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 100, 0), held = use("held", 100, 0),
                        elsewhere = use("w", 100, 0);
    elsewhere.partition = 1;
    apply(&rig, &one, 20);
    apply(&rig, &elsewhere, 20);
    struct resident *resident = attach(&rig, &held, 20);
    char topic[] = "jobs"; /* of a client, which forgets it */
    residents_revoke(rig.residents, topic, 0, 30);
    topic[0] = 0;
    assert_int_equal(residents_read_counts(rig.residents).count, 2);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 40);
    assert_int_equal(residents_read_counts(rig.residents).count, 1);
    one.offset = 1;
    assert_refused(&rig, &one, 50, ERR_REVOKED);
    one.received_ns = 31;
    apply(&rig, &one, 50);
    assert_int_equal(residents_read_counts(rig.residents).count, 2);
    rig_fini(&rig);
}

/* Creates residents of `bytes` under the key until one is refused; how many there are then. */
static uint64_t fill_key(struct rig *rig, const char *key, uint64_t bytes, enum err refusal) {
    for (uint64_t count = 0;; count++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", (int)count);
        struct resident_use one = use(name, bytes, 0);
        struct resident *resident;
        one.key = slice_of_text(key);
        enum err code = residents_attach(rig->residents, &one, 1, &resident, &rig->err);
        if (code != ERR_OK) {
            assert_int_equal(code, refusal);
            return count;
        }
        residents_detach(rig->residents, resident, RESIDENT_APPLIED, 1);
    }
}

TEST(residents_of_a_key_and_all_together_stay_within_their_bytes) {
    struct rig rig;
    rig_init(&rig, NULL);
    const uint64_t most = CPU_DEVICE_BYTES / 2 / MEBIBYTE, of_key = most / 2;
    struct resident_use one = use("w", CPU_DEVICE_BYTES / 4 + 1, 0);
    assert_refused(&rig, &one, 1, ERR_TOO_LARGE); /* no other can make room for it */
    assert_int_equal(fill_key(&rig, "a", MEBIBYTE, ERR_RESIDENTS_FULL), of_key);
    assert_non_null(strstr(rig.err.fix, "residents.bytes_per_key"));
    assert_int_equal(fill_key(&rig, "b", MEBIBYTE, ERR_RESIDENTS_FULL), of_key);
    assert_int_equal(fill_key(&rig, "c", MEBIBYTE, ERR_RESIDENTS_FULL), 0);
    assert_non_null(strstr(rig.err.fix, "residents.bytes_max"));
    assert_int_equal(residents_read_counts(rig.residents).bytes, most * MEBIBYTE);
    assert_int_equal(cpu_driver_counters().device_bytes_live, most * MEBIBYTE);
    assert_int_equal(budget_limit(&rig.budget), JOBS_POOL_BYTES + most * MEBIBYTE);

    one = use("w0", MEBIBYTE, 1); /* one that goes makes room under its key, and for all */
    one.key = slice_of_text("a");
    residents_detach(rig.residents, attach(&rig, &one, 1), RESIDENT_SPOILT, 1);
    assert_int_equal(fill_key(&rig, "c", MEBIBYTE, ERR_RESIDENTS_FULL), 1);
    rig_fini(&rig);
}

TEST(a_key_with_many_residents_leaves_places_for_others) {
    struct rig rig;
    rig_init(&rig, NULL);
    assert_int_equal(fill_key(&rig, "a", 0, ERR_RESIDENTS_FULL), KEY_ENTRIES_MAX);
    assert_non_null(strstr(rig.err.fix, "residents.entries_per_key"));
    assert_int_equal(fill_key(&rig, "", 0, ERR_RESIDENTS_FULL), 100 - KEY_ENTRIES_MAX);
    residents_drop_idle(rig.residents, 2 + IDLE_NS);
    assert_int_equal(fill_key(&rig, "a", 0, ERR_RESIDENTS_FULL), KEY_ENTRIES_MAX);
    rig_fini(&rig);
}

TEST(a_new_resident_leaves_a_tenth_of_what_is_free) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct pool_block block;
    budget_set_limit(&rig.budget, 48 << 20);
    assert_int_equal(pool_acquire(rig.pool, &rig.counters, 48 << 20, &block, &rig.err), ERR_OK);
    struct resident_use one = use("w", 16 << 20, 0);
    assert_refused(&rig, &one, 1, ERR_DEVICE_MEMORY);
    one.bytes = 14 << 20;
    apply(&rig, &one, 1);
    assert_int_equal(pool_release(rig.pool, &rig.counters, &block, &rig.err), ERR_OK);
    residents_destroy(rig.residents);
    rig.residents = NULL;
    assert_int_equal(budget_limit(&rig.budget), 48 << 20);
    budget_set_limit(&rig.budget, JOBS_POOL_BYTES);
    rig_fini(&rig);
}

TEST(blocks_come_from_the_pool_and_go_back_to_it) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 4096, 0);
    apply(&rig, &one, 1);
    uint64_t calls = cpu_driver_counters().calls[CPU_memory_alloc];
    one.offset = 1;
    residents_detach(rig.residents, attach(&rig, &one, 1), RESIDENT_SPOILT, 1);
    assert_int_equal(cpu_driver_counters().allocations_live, 1);
    one.offset = 2;
    apply(&rig, &one, 1);
    assert_int_equal(cpu_driver_counters().calls[CPU_memory_alloc], calls);
    rig_fini(&rig);
}

TEST(a_resident_that_the_driver_has_no_room_for_leaves_nothing_behind) {
    struct rig rig;
    rig_init(&rig, "cuMemAlloc:out_of_memory@1");
    struct resident_use one = use("w", 4096, 0);
    struct resident *resident;
    assert_int_equal(
        residents_attach(rig.residents, &one, 1, &resident, &rig.err), ERR_DEVICE_MEMORY);
    assert_int_equal(residents_read_counts(rig.residents).count, 0);
    assert_int_equal(residents_read_counts(rig.residents).bytes, 0);
    assert_int_equal(budget_limit(&rig.budget), JOBS_POOL_BYTES);
    apply(&rig, &one, 1);
    rig_fini(&rig);
}

TEST(a_resident_takes_the_place_of_statics_that_nobody_uses) {
    struct rig rig;
    rig_init(&rig, "cuMemAlloc:out_of_memory@2");
    static const uint8_t bytes[1000];
    const struct payload payload = {.bytes = slice_of(bytes, sizeof bytes)};
    struct digest digest = digest_of(payload.bytes);
    struct static_entry *entry;
    bool uploaded;
    assert_int_equal(
        statics_upload(rig.statics, &digest, &payload, &entry, &uploaded, &rig.err), ERR_OK);
    statics_unref(rig.statics, entry);
    struct resident_use one = use("w", 4096, 0);
    apply(&rig, &one, 1);
    assert_int_equal(statics_read_counts(rig.statics).evictions, 1);
    rig_fini(&rig);
}

TEST(what_is_idle_is_dropped_though_no_job_comes) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 4096, 0);
    apply(&rig, &one, 100);
    residents_drop_idle(rig.residents, 100 + IDLE_NS);
    assert_int_equal(residents_read_counts(rig.residents).count, 1);
    residents_drop_idle(rig.residents, 100 + IDLE_NS + 1);
    assert_int_equal(residents_read_counts(rig.residents).count, 0);
    assert_int_equal(residents_read_counts(rig.residents).bytes, 0);
    rig_fini(&rig);
}

TEST(an_empty_resident_takes_nothing) {
    struct rig rig;
    rig_init(&rig, NULL);
    struct resident_use one = use("w", 0, 0);
    struct resident *resident = attach(&rig, &one, 1);
    assert_int_equal(resident_address(resident), 0);
    residents_detach(rig.residents, resident, RESIDENT_APPLIED, 1);
    assert_int_equal(cpu_driver_counters().allocations_live, 0);
    rig_fini(&rig);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        D(a_generation_counts_updates_and_not_reads),
        D(the_last_update_is_known_again_and_an_earlier_one_is_refused),
        D(an_attempt_that_never_ran_is_no_update),
        D(an_update_that_failed_drops_and_a_read_that_failed_does_not),
        D(size_and_generation_must_be_those_that_the_job_says),
        D(names_count_within_topic_partition_and_key),
        D(what_is_idle_for_too_long_is_dropped_and_what_is_in_use_is_not),
        D(a_revoked_partition_loses_its_residents_and_jobs_from_before_make_none),
        D(residents_of_a_key_and_all_together_stay_within_their_bytes),
        D(a_key_with_many_residents_leaves_places_for_others),
        D(a_new_resident_leaves_a_tenth_of_what_is_free),
        D(blocks_come_from_the_pool_and_go_back_to_it),
        D(a_resident_that_the_driver_has_no_room_for_leaves_nothing_behind),
        D(a_resident_takes_the_place_of_statics_that_nobody_uses),
        D(what_is_idle_is_dropped_though_no_job_comes),
        D(an_empty_resident_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

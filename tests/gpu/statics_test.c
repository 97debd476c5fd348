/* Proves: alignment and padding; clearing frees what is cached; memory that is pinned in place;
 * statics are found by their digest; one upload for each static; what the cache of statics holds
 * and evicts; shutdown and loss give everything back; exact counters. */
#include "gpu/statics.h"

#include <stdio.h>
#include <sys/mman.h>

#include "gpu/size_class.h"
#include "gpu/statics_rig.h"
#include "support/wait.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

TEST(a_payload_is_found_by_its_digest_and_moves_once) {
    struct rig rig;
    rig_open(&rig, 8 * MIB);
    assert_null(rig_find(&rig, 1));
    struct static_entry *first = rig_get(&rig, 1, 5000), *again = NULL;
    bool uploaded = true;
    must(rig_upload(&rig, 1, 5000, &again, &uploaded), &rig.err);
    assert_ptr_equal(first, again);
    assert_false(uploaded);
    assert_int_equal(static_entry_bytes(first), 5000);
    check_bytes(&rig, first, 1, 5000, rig.lane.stream);
    assert_int_equal(cpu_driver_counters().bytes_to_device, 5008); /* in units of 16 */
    assert_null(rig_find(&rig, 2));
    struct statics_counts counts = statics_read_counts(rig.statics);
    assert_int_equal(counts.misses, 1);
    assert_int_equal(counts.hits, 1);
    assert_int_equal(counts.uploaded_bytes, 5000);
    assert_int_equal(counts.saved_bytes, 5000);
    assert_int_equal(counts.cached_bytes, 8192); /* its size class */
    statics_unref(rig.statics, first);
    statics_unref(rig.statics, again);
    rig_close(&rig);
}

TEST(payloads_larger_than_all_staging_arrive_whole) {
    struct rig rig;
    rig_open(&rig, 32 * MIB);
    for (uint32_t n = 0; n < 3; n++) {
        size_t bytes = 5 * MIB + 12345 * n;
        struct static_entry *entry = rig_get(&rig, n, bytes);
        check_bytes(&rig, entry, n, bytes, rig.lane.stream);
        statics_unref(rig.statics, entry);
    }
    rig_close(&rig);
}

/* ---- threads ---- */

enum { THREADS = 16 };

struct visitor {
    struct rig *rig;
    uint8_t *bytes;
    uint32_t seed;
    bool uploaded;
    pthread_t thread;
};

static void visitors_run(struct rig *rig, struct visitor *visitors, void *(*body)(void *)) {
    for (uint32_t i = 0; i < THREADS; i++) {
        visitors[i] = (struct visitor){.rig = rig, .seed = i, .bytes = malloc(MIB)};
        assert_non_null(visitors[i].bytes);
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, body, &visitors[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(visitors[i].thread, NULL);
        free(visitors[i].bytes);
    }
}

static struct static_entry *visitor_get(
    struct visitor *visitor, uint32_t n, size_t bytes, bool *ret_uploaded) {
    struct error err;
    struct static_entry *entry = NULL;
    struct digest digest = digest_of_number(n);
    const struct payload payload = {.bytes = payload_fill(visitor->bytes, n, bytes)};
    must(
        statics_upload(visitor->rig->statics, &digest, &payload, &entry, ret_uploaded, &err), &err);
    return entry;
}

/* Uses the payload at once, on a stream of its own: it must be there however late its copy is. */
static void visitor_check(
    struct visitor *visitor, struct static_entry *entry, uint32_t n, size_t bytes) {
    struct error err;
    struct stream_lease lane;
    must(stream_lease_take(visitor->rig->leases, false, &lane, &err), &err);
    check_bytes(visitor->rig, entry, n, bytes, lane.stream);
    must(stream_lease_release(visitor->rig->leases, &lane, &err), &err);
}

static void *visit_one(void *context) {
    struct visitor *visitor = context;
    struct error err;
    must(device_bind(&visitor->rig->device, &err), &err);
    struct static_entry *entry = visitor_get(visitor, 7, 300 * KIB, &visitor->uploaded);
    visitor_check(visitor, entry, 7, 300 * KIB);
    statics_unref(visitor->rig->statics, entry);
    return NULL;
}

TEST(sixteen_threads_that_ask_for_one_cold_payload_move_it_once) {
    struct rig rig;
    rig_open(&rig, 8 * MIB);
    struct visitor visitors[THREADS];
    visitors_run(&rig, visitors, visit_one);
    unsigned uploads = 0;
    for (size_t i = 0; i < THREADS; i++) uploads += visitors[i].uploaded;
    assert_int_equal(uploads, 1);
    assert_int_equal(cpu_driver_counters().bytes_to_device, 300 * KIB);
    visitors_run(&rig, visitors, visit_one);
    assert_int_equal(cpu_driver_counters().bytes_to_device, 300 * KIB);
    struct statics_counts counts = statics_read_counts(rig.statics);
    assert_int_equal(counts.misses, 1);
    assert_int_equal(counts.hits, 2 * THREADS - 1);
    rig_close(&rig);
}

enum { MIX_PAYLOADS = 24, MIX_ROUNDS = 60 };

/* Of 256 bytes to 256 KiB, and three that the budget cannot take. */
static size_t mix_bytes(uint32_t n) {
    return n < 3 ? MIB - n : ((size_t)256 << (n % 11)) - n;
}

static void *visit_many(void *context) {
    struct visitor *visitor = context;
    struct error err;
    must(device_bind(&visitor->rig->device, &err), &err);
    uint32_t random = visitor->seed * 2654435761u + 1;
    for (int round = 0; round < MIX_ROUNDS; round++) {
        random = random * 1664525u + 1013904223u;
        uint32_t n = (random >> 8) % MIX_PAYLOADS;
        struct digest digest = digest_of_number(n);
        struct static_entry *entry = statics_find(visitor->rig->statics, &digest);
        bool uploaded;
        if (entry == NULL) entry = visitor_get(visitor, n, mix_bytes(n), &uploaded);
        if (round % 4 == 0) visitor_check(visitor, entry, n, mix_bytes(n));
        statics_unref(visitor->rig->statics, entry);
    }
    return NULL;
}

/* Exactly so many bytes move; copies that nobody waited for may still be under way. */
static void await_copies(uint64_t bytes) {
    WAIT_FOR(cpu_driver_counters().bytes_to_device, >=, bytes);
    assert_int_equal(cpu_driver_counters().bytes_to_device, bytes);
}

/* What is found must add up to what the books say. */
static void check_books(struct rig *rig, const size_t *sizes, uint32_t count) {
    uint64_t found_bytes = 0;
    for (uint32_t n = 0; n < count; n++) {
        size_t class;
        if (!rig_has(rig, n)) continue;
        must(size_class_find(sizes[n], &class, &rig->err), &rig->err);
        found_bytes += size_class_bytes(class);
    }
    assert_int_equal(statics_read_counts(rig->statics).cached_bytes, found_bytes);
    size_t counters_count;
    const struct pool_counters *counters = statics_device_counters(rig->statics, &counters_count);
    struct pool_usage usage;
    must(pool_usage_sum(&(struct pool_books){counters, counters_count}, 1, &usage, &rig->err),
        &rig->err);
    assert_int_equal(usage.live_bytes, found_bytes);
}

TEST(the_books_are_exact_after_any_mix_of_hits_misses_and_evictions) {
    struct rig rig;
    rig_open(&rig, 512 * KIB);
    struct visitor visitors[THREADS];
    visitors_run(&rig, visitors, visit_many);
    size_t sizes[MIX_PAYLOADS];
    for (uint32_t n = 0; n < MIX_PAYLOADS; n++) sizes[n] = mix_bytes(n);
    struct statics_counts counts = statics_read_counts(rig.statics);
    assert_true(counts.evictions > 0);
    assert_true(counts.cached_bytes <= 512 * KIB);
    assert_int_equal(counts.hits + counts.misses, THREADS * MIX_ROUNDS);
    await_copies(statics_upload_counts(rig.statics).bytes);
    check_books(&rig, sizes, MIX_PAYLOADS);
    rig_close(&rig);
}

/* ---- room ---- */

TEST(a_payload_larger_than_the_budget_lives_for_its_references_alone) {
    struct rig rig;
    rig_open(&rig, MIB);
    struct static_entry *small = rig_get(&rig, 1, 4 * KIB);
    struct static_entry *large = rig_get(&rig, 2, 2 * MIB);
    check_bytes(&rig, large, 2, 2 * MIB, rig.lane.stream);
    assert_null(rig_find(&rig, 2));
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, 4 * KIB);
    uint64_t charged = budget_charged(&rig.device_budget), freed;
    statics_unref(rig.statics, large);
    must(pool_clear(rig.device_pool, &rig.device_counters, &freed, &rig.err), &rig.err);
    assert_int_equal(budget_charged(&rig.device_budget), charged - 2 * MIB);
    statics_unref(rig.statics, small);
    assert_true(rig_has(&rig, 1));
    rig_close(&rig);
}

TEST(what_is_in_use_is_never_evicted) {
    struct rig rig;
    rig_open(&rig, 256 * KIB);
    struct static_entry *pinned[3];
    for (uint32_t n = 0; n < 3; n++) pinned[n] = rig_get(&rig, n, 64 * KIB);
    for (uint32_t n = 3; n < 40; n++) statics_unref(rig.statics, rig_get(&rig, n, 64 * KIB));
    for (uint32_t n = 0; n < 3; n++) {
        assert_true(rig_has(&rig, n));
        check_bytes(&rig, pinned[n], n, 64 * KIB, rig.lane.stream);
    }
    /* With all of the budget in use, a newcomer is its job's alone. */
    struct static_entry *fourth = rig_get(&rig, 40, 64 * KIB), *fifth = rig_get(&rig, 41, 64 * KIB);
    assert_true(rig_has(&rig, 40));
    assert_false(rig_has(&rig, 41));
    statics_unref(rig.statics, fifth);
    statics_unref(rig.statics, fourth);
    for (uint32_t n = 0; n < 3; n++) statics_unref(rig.statics, pinned[n]);
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, 256 * KIB);
    rig_close(&rig);
}

TEST(as_many_payloads_stay_as_the_table_may_have_and_no_more) {
    enum { ENTRIES_MAX = 3 };
    struct rig rig;
    rig_prepare(&rig, NULL);
    struct statics_options options = rig_options(&rig, 8 * MIB);
    options.entries_max = ENTRIES_MAX;
    must(statics_create(&options, &rig.statics, &rig.err), &rig.err);
    for (uint32_t n = 0; n < 2 * ENTRIES_MAX; n++) {
        statics_unref(rig.statics, rig_get(&rig, n, 4 * KIB));
        uint64_t expected = n < ENTRIES_MAX ? n + 1 : ENTRIES_MAX;
        assert_int_equal(statics_read_counts(rig.statics).cached_count, expected);
    }
    rig_close(&rig);
}

TEST(memory_shortage_sheds_what_nobody_uses_and_no_more_than_needed) {
    struct rig rig;
    rig_open(&rig, CPU_DEVICE_BYTES);
    struct static_entry *pinned = rig_get(&rig, 0, 4 * MIB);
    for (uint32_t n = 1; n < 12; n++) statics_unref(rig.statics, rig_get(&rig, n, 4 * MIB));
    struct pool_block block;
    must(statics_acquire_memory(rig.statics, &rig.device_counters, 28 * MIB, &block, &rig.err),
        &rig.err);
    assert_true(rig_has(&rig, 0));
    uint64_t left = statics_read_counts(rig.statics).cached_bytes;
    assert_in_range(left, 8 * MIB, 36 * MIB);

    struct pool_block other; /* for which not even all statics would be enough */
    assert_int_equal(
        statics_acquire_memory(rig.statics, &rig.device_counters, 40 * MIB, &other, &rig.err),
        ERR_DEVICE_MEMORY);
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, left);
    must(pool_release(rig.device_pool, &rig.device_counters, &block, &rig.err), &rig.err);
    check_bytes(&rig, pinned, 0, 4 * MIB, rig.lane.stream);
    statics_unref(rig.statics, pinned);
    rig_close(&rig);
}

TEST(an_upload_that_finds_no_memory_sheds_others_for_it) {
    struct rig rig;
    rig_open(&rig, 1024 * (uint64_t)MIB);
    size_t sizes[40];
    for (uint32_t n = 0; n < 40; n++) {
        sizes[n] = 4 * MIB;
        statics_unref(rig.statics, rig_get(&rig, n, sizes[n]));
    }
    assert_true(statics_read_counts(rig.statics).evictions >= 40 - CPU_DEVICE_BYTES / (4 * MIB));
    check_books(&rig, sizes, 40);
    rig_close(&rig);
}

TEST(shedding_on_request_says_what_it_freed) {
    struct rig rig;
    rig_open(&rig, 8 * MIB);
    assert_int_equal(statics_shed(rig.statics, &rig.device_counters, MIB), 0);
    for (uint32_t n = 0; n < 4; n++) statics_unref(rig.statics, rig_get(&rig, n, 64 * KIB));
    assert_int_equal(statics_shed(rig.statics, &rig.device_counters, 100 * KIB), 128 * KIB);
    assert_int_equal(statics_shed(rig.statics, &rig.device_counters, UINT64_MAX), 128 * KIB);
    assert_int_equal(statics_read_counts(rig.statics).cached_bytes, 0);
    rig_close(&rig);
}

static void *use_one_again_and_again(void *context) {
    struct visitor *visitor = context;
    for (int round = 0; round < 100; round++) (void)rig_has(visitor->rig, 0);
    return NULL;
}

TEST(what_is_in_nobodys_use_leaves_however_often_threads_have_used_it) {
    struct rig rig;
    rig_open(&rig, 8 * MIB);
    statics_unref(rig.statics, rig_get(&rig, 0, 64 * KIB));
    struct visitor visitors[THREADS];
    visitors_run(&rig, visitors, use_one_again_and_again);
    struct static_entry *in_use = rig_find(&rig, 0);
    assert_non_null(in_use);
    assert_int_equal(statics_shed(rig.statics, &rig.device_counters, UINT64_MAX), 0);
    assert_int_equal(statics_read_counts(rig.statics).hits, THREADS * 100 + 1);
    check_bytes(&rig, in_use, 0, 64 * KIB, rig.lane.stream);
    statics_unref(rig.statics, in_use);
    visitors_run(&rig, visitors, use_one_again_and_again);
    assert_int_equal(statics_shed(rig.statics, &rig.device_counters, UINT64_MAX), 64 * KIB);
    assert_false(rig_has(&rig, 0));
    rig_close(&rig);
}

/* ---- order ---- */

TEST(streams_wait_for_a_copy_under_way_and_not_for_one_that_is_done) {
    struct rig rig;
    rig_open(&rig, 8 * MIB);
    struct static_entry *entry = rig_get(&rig, 1, 64 * KIB);
    check_bytes(&rig, entry, 1, 64 * KIB, rig.lane.stream);
    must(static_entry_await(&rig.device, entry, rig.lane.stream, &rig.err), &rig.err);
    struct cpu_driver_counters before = cpu_driver_counters();
    for (int i = 0; i < 100; i++)
        must(static_entry_await(&rig.device, entry, rig.lane.stream, &rig.err), &rig.err);
    struct cpu_driver_counters after = cpu_driver_counters();
    assert_int_equal(after.calls[CPU_stream_wait_event], before.calls[CPU_stream_wait_event]);
    assert_int_equal(after.calls[CPU_event_query], before.calls[CPU_event_query]);
    statics_unref(rig.statics, entry);
    rig_close(&rig);
}

TEST(memory_of_an_entry_that_nobody_used_is_not_given_away_under_its_copy) {
    struct rig rig;
    rig_open(&rig, 64 * KIB);
    /* Each evicts the one before, whose copy may not have begun. */
    for (uint32_t n = 0; n < 50; n++) statics_unref(rig.statics, rig_get(&rig, n, 64 * KIB));
    struct static_entry *last = rig_get(&rig, 49, 64 * KIB);
    check_bytes(&rig, last, 49, 64 * KIB, rig.lane.stream);
    statics_unref(rig.statics, last);
    rig_close(&rig);
}

/* ---- sources that are registered ---- */

static struct slice map_payload(struct rig *rig, uint32_t n, size_t bytes) {
    FILE *file = tmpfile();
    assert_non_null(file);
    payload_fill(rig->bytes, n, bytes);
    assert_int_equal(fwrite(rig->bytes, 1, bytes, file), bytes);
    assert_int_equal(fflush(file), 0);
    void *mapping = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fileno(file), 0);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    fclose(file);
    return slice_of(mapping, bytes);
}

static void upload_mapping(struct rig *rig, uint32_t n, size_t bytes) {
    struct digest digest = digest_of_number(n);
    const struct payload payload = {.bytes = map_payload(rig, n, bytes), .is_shared_mapping = true};
    struct static_entry *entry = NULL;
    bool uploaded;
    must(statics_upload(rig->statics, &digest, &payload, &entry, &uploaded, &rig->err), &rig->err);
    munmap((void *)(uintptr_t)payload.bytes.data, bytes);
    check_bytes(rig, entry, n, bytes, rig->lane.stream);
    statics_unref(rig->statics, entry);
}

TEST(a_large_mapping_is_copied_from_where_it_lies) {
    struct rig rig;
    rig_open(&rig, 32 * MIB);
    upload_mapping(&rig, 1, 5 * MIB);
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(counters.calls[CPU_host_register], 1);
    assert_int_equal(counters.calls[CPU_host_unregister], 1);
    assert_int_equal(counters.calls[CPU_copy_to_device], 1);
    upload_mapping(&rig, 3, 5 * MIB + 5);
    assert_int_equal(cpu_driver_counters().calls[CPU_host_register], 2);
    upload_mapping(&rig, 2, 64 * KIB); /* a small one is not worth it */
    assert_int_equal(cpu_driver_counters().calls[CPU_host_register], 2);
    rig_close(&rig);
}

RUN_TESTS(D(a_payload_is_found_by_its_digest_and_moves_once),
    D(payloads_larger_than_all_staging_arrive_whole),
    D(sixteen_threads_that_ask_for_one_cold_payload_move_it_once),
    D(the_books_are_exact_after_any_mix_of_hits_misses_and_evictions),
    D(a_payload_larger_than_the_budget_lives_for_its_references_alone),
    D(what_is_in_use_is_never_evicted), D(as_many_payloads_stay_as_the_table_may_have_and_no_more),
    D(memory_shortage_sheds_what_nobody_uses_and_no_more_than_needed),
    D(an_upload_that_finds_no_memory_sheds_others_for_it),
    D(shedding_on_request_says_what_it_freed),
    D(what_is_in_nobodys_use_leaves_however_often_threads_have_used_it),
    D(streams_wait_for_a_copy_under_way_and_not_for_one_that_is_done),
    D(memory_of_an_entry_that_nobody_used_is_not_given_away_under_its_copy),
    D(a_large_mapping_is_copied_from_where_it_lies))

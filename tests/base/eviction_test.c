/* Proves: what the caches of statics and blobs hold and evict. */
#include "base/eviction.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BUDGET = 8 * MIB };

static int set_up(void **state) {
    struct eviction *eviction = malloc(sizeof *eviction);
    assert_non_null(eviction);
    eviction_init(eviction, BUDGET);
    *state = eviction;
    return 0;
}

static int tear_down(void **state) {
    free(*state);
    return 0;
}

static struct eviction_item *take(struct eviction *eviction) {
    struct eviction_item *item = eviction_take(eviction, EVICTION_FOR_OTHERS);
    assert_non_null(item);
    return item;
}

static void add(
    struct eviction *eviction, struct eviction_item *item, uint64_t name, uint64_t charge) {
    *item = (struct eviction_item){.name = name << 32 | name, .charge = charge};
    eviction_add(eviction, item);
}

static void use(struct eviction_item *item, int times) {
    for (int n = 0; n < times; n++) eviction_use(item);
}

TEST(nothing_leaves_an_empty_cache) {
    struct eviction *eviction = *state;
    assert_null(eviction_take(eviction, EVICTION_FOR_OTHERS));
    assert_false(eviction_may_take(eviction, EVICTION_FOR_OTHERS));
    struct eviction_item item;
    add(eviction, &item, 1, 100);
    assert_ptr_equal(take(eviction), &item);
    assert_null(eviction_take(eviction, EVICTION_FOR_OTHERS));
}

TEST(a_payload_that_leaves_by_itself_is_forgotten) {
    struct eviction *eviction = *state;
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) add(eviction, &items[i], i + 1, 4096);
    eviction_remove(eviction, &items[1]);
    assert_int_equal(eviction_claim_of(eviction, items[1].name), EVICTION_FOR_NEWCOMER);
    assert_ptr_equal(take(eviction), &items[0]);
    assert_ptr_equal(take(eviction), &items[2]);
    assert_null(eviction_take(eviction, EVICTION_FOR_OTHERS));
}

TEST(of_payloads_that_nobody_used_again_the_oldest_leaves_first) {
    struct eviction *eviction = *state;
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) add(eviction, &items[i], i + 1, (uint64_t)4096 << i);
    for (size_t i = 0; i < 3; i++) assert_ptr_equal(take(eviction), &items[i]);
}

TEST(of_payloads_of_one_age_the_least_used_leaves_first) {
    struct eviction *eviction = *state;
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) add(eviction, &items[i], i + 1, 4096);
    use(&items[0], 5);
    use(&items[2], 2);
    assert_ptr_equal(take(eviction), &items[1]);
    assert_ptr_equal(take(eviction), &items[2]);
    assert_ptr_equal(take(eviction), &items[0]);
}

TEST(a_large_payload_that_was_used_outlives_any_number_of_small_ones_that_are_used_once) {
    struct eviction *eviction = *state;
    struct eviction_item large, small[1000];
    add(eviction, &large, 1000, 4 * MIB);
    use(&large, 300);
    for (size_t i = 0; i < 1000; i++) add(eviction, &small[i], i, 4096);
    for (int round = 0; round < 100; round++)
        for (size_t i = 0; i < 1000; i++) {
            assert_ptr_equal(eviction_take(eviction, EVICTION_FOR_NEWCOMER), &small[i]);
            add(eviction, &small[i], (uint64_t)(round + 1) * 1000 + i, 4096);
        }
}

/* A stranger's own payloads join the members as well, and cost the others a use for each round. */
TEST(a_payload_in_steady_use_outlives_small_ones_that_a_stranger_uses_more) {
    struct eviction *eviction = *state;
    enum { COUNT = BUDGET / 2 / 4096 };
    static struct eviction_item small[COUNT];
    struct eviction_item large;
    add(eviction, &large, COUNT, 4 * MIB);
    use(&large, 300);
    for (size_t i = 0; i < COUNT; i++) add(eviction, &small[i], i, 4096);
    for (uint64_t name = COUNT + 1; name < 50 * COUNT; name++) {
        if (name % 100 == 0) use(&large, 1);
        struct eviction_item *item = eviction_take(eviction, EVICTION_FOR_NEWCOMER);
        assert_non_null(item);
        assert_ptr_not_equal(item, &large);
        add(eviction, item, name, 4096);
        use(item, 3);
    }
}

TEST(a_newcomer_takes_no_room_from_members_that_were_used_until_it_comes_again) {
    struct eviction *eviction = *state;
    struct eviction_item items[7];
    for (size_t i = 0; i < 7; i++) {
        add(eviction, &items[i], i + 1, MIB);
        use(&items[i], 3);
    }
    for (int n = 0; n < 100; n++) assert_null(eviction_take(eviction, EVICTION_FOR_NEWCOMER));
    assert_false(eviction_may_take(eviction, EVICTION_FOR_NEWCOMER));
    assert_true(eviction_may_take(eviction, EVICTION_FOR_KNOWN));
    const uint64_t name = (uint64_t)99 << 32 | 99;
    assert_int_equal(eviction_claim_of(eviction, name), EVICTION_FOR_NEWCOMER);
    eviction_remember(eviction, name);
    assert_int_equal(eviction_claim_of(eviction, name), EVICTION_FOR_KNOWN);
    assert_non_null(eviction_take(eviction, EVICTION_FOR_KNOWN));
}

TEST(an_old_favourite_leaves_in_the_end_however_often_it_was_used) {
    struct eviction *eviction = *state;
    enum { COUNT = BUDGET / 4096 };
    static struct eviction_item items[COUNT];
    struct eviction_item favourite;
    add(eviction, &favourite, 1, 4096);
    use(&favourite, 1000000);
    for (size_t i = 0; i < COUNT; i++) add(eviction, &items[i], i + 2, 4096);
    uint64_t name = COUNT + 2;
    for (;; name++) {
        struct eviction_item *item = eviction_take(eviction, EVICTION_FOR_NEWCOMER);
        if (item == &favourite) break;
        assert_true(name < 100 * COUNT);
        add(eviction, item, name, 4096);
        use(item, 2);
    }
    assert_true(name > 2 * COUNT);
}

TEST(what_cannot_leave_goes_back_behind_the_others) {
    struct eviction *eviction = *state;
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) add(eviction, &items[i], i + 1, 4096);
    struct eviction_item *pinned = take(eviction);
    assert_ptr_equal(take(eviction), &items[1]);
    eviction_put_back(eviction, pinned);
    assert_ptr_equal(take(eviction), &items[2]);
    assert_ptr_equal(take(eviction), pinned);
}

/* ---- a trace: 2,000 payloads of 4 KiB to 4 MiB, asked for as often as their rank allows ---- */

enum { PAYLOADS = 2000, REQUESTS = 20000 };

struct trace {
    size_t bytes[PAYLOADS];
    uint64_t budget_bytes;
    uint16_t requests[REQUESTS];
};

struct cached {
    struct eviction_item item;
    bool is_in;
    uint32_t last_request;
};

struct simulation {
    const struct trace *trace;
    struct eviction eviction;
    enum eviction_claim claim;
    struct cached payloads[PAYLOADS];
};

static double draw(uint64_t *random) { /* splitmix64 */
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static struct trace *trace_create(double exponent, double budget_share) {
    static double up_to[PAYLOADS];
    struct trace *trace = calloc(1, sizeof *trace);
    assert_non_null(trace);
    uint64_t random = 1, total_bytes = 0;
    double sum = 0;
    for (size_t i = 0; i < PAYLOADS; i++) {
        trace->bytes[i] = (size_t)(4096 * pow(1024, draw(&random)));
        total_bytes += trace->bytes[i];
        up_to[i] = sum += 1 / pow((double)i + 1, exponent);
    }
    for (size_t n = 0; n < REQUESTS; n++) {
        double point = draw(&random) * sum;
        size_t low = 0, high = PAYLOADS - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (up_to[middle] < point) low = middle + 1;
            else high = middle;
        }
        trace->requests[n] = (uint16_t)low;
    }
    trace->budget_bytes = (uint64_t)((double)total_bytes * budget_share);
    return trace;
}

static struct cached *take_ours(struct simulation *simulation) {
    return (struct cached *)eviction_take(&simulation->eviction, simulation->claim);
}

static struct cached *take_least_recent(struct simulation *simulation) {
    struct cached *victim = NULL;
    for (size_t i = 0; i < PAYLOADS; i++) {
        struct cached *payload = &simulation->payloads[i];
        if (payload->is_in && (victim == NULL || payload->last_request < victim->last_request))
            victim = payload;
    }
    return victim;
}

static struct cached *take_largest(struct simulation *simulation) {
    struct cached *victim = NULL;
    for (size_t i = 0; i < PAYLOADS; i++) {
        struct cached *payload = &simulation->payloads[i];
        if (payload->is_in && (victim == NULL || payload->item.charge > victim->item.charge))
            victim = payload;
    }
    return victim;
}

struct score {
    double hit_rate;
    uint64_t moved_bytes;
};

static struct score simulate(
    const struct trace *trace, struct cached *(*take_victim)(struct simulation *)) {
    struct simulation *simulation = calloc(1, sizeof *simulation);
    assert_non_null(simulation);
    eviction_init(&simulation->eviction, trace->budget_bytes);
    for (uint64_t i = 0; i < PAYLOADS; i++)
        simulation->payloads[i].item = (struct eviction_item){
            .name = (i + 1) * 0x9e3779b97f4a7c15u, .charge = trace->bytes[i]};
    struct score score = {0};
    uint64_t cached_bytes = 0;
    unsigned hits = 0;
    bool is_ours = take_victim == take_ours;
    for (uint32_t n = 0; n < REQUESTS; n++) {
        size_t bytes = trace->bytes[trace->requests[n]];
        struct cached *payload = &simulation->payloads[trace->requests[n]];
        payload->last_request = n;
        if (payload->is_in) {
            hits++;
            if (is_ours) eviction_use(&payload->item);
            continue;
        }
        score.moved_bytes += bytes;
        simulation->claim = eviction_claim_of(&simulation->eviction, payload->item.name);
        struct cached *victim = payload;
        while (cached_bytes > trace->budget_bytes - bytes &&
               (victim = take_victim(simulation)) != NULL) {
            victim->is_in = false;
            cached_bytes -= victim->item.charge;
        }
        if (is_ours && victim == NULL) eviction_remember(&simulation->eviction, payload->item.name);
        if (victim == NULL) continue;
        if (is_ours) eviction_add(&simulation->eviction, &payload->item);
        payload->is_in = true;
        cached_bytes += bytes;
    }
    free(simulation);
    score.hit_rate = (double)hits / REQUESTS;
    return score;
}

static void compare(double exponent, double budget_share) {
    struct trace *trace = trace_create(exponent, budget_share);
    struct score ours = simulate(trace, take_ours);
    struct score least_recent = simulate(trace, take_least_recent);
    struct score largest = simulate(trace, take_largest);
    free(trace);
    print_message("Zipf %.1f over %d payloads, budget %.0f%%: hit rate ours %.3f, least recent "
                  "%.3f, largest first %.3f; GB moved %.1f, %.1f, %.1f\n",
        exponent, PAYLOADS, budget_share * 100, ours.hit_rate, least_recent.hit_rate,
        largest.hit_rate, (double)ours.moved_bytes / 1e9, (double)least_recent.moved_bytes / 1e9,
        (double)largest.moved_bytes / 1e9);
    assert_true(ours.hit_rate > least_recent.hit_rate);
    assert_true(ours.moved_bytes < least_recent.moved_bytes);
    assert_true(ours.moved_bytes < largest.moved_bytes);
}

TEST(fewer_bytes_move_than_with_largest_first_or_least_recent_first) {
    compare(0.8, 0.06);
    compare(1.0, 0.02);
    compare(1.0, 0.06);
    compare(1.2, 0.06);
}

#define E(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(E(nothing_leaves_an_empty_cache), E(a_payload_that_leaves_by_itself_is_forgotten),
    E(of_payloads_that_nobody_used_again_the_oldest_leaves_first),
    E(of_payloads_of_one_age_the_least_used_leaves_first),
    E(a_large_payload_that_was_used_outlives_any_number_of_small_ones_that_are_used_once),
    E(a_payload_in_steady_use_outlives_small_ones_that_a_stranger_uses_more),
    E(a_newcomer_takes_no_room_from_members_that_were_used_until_it_comes_again),
    E(an_old_favourite_leaves_in_the_end_however_often_it_was_used),
    E(what_cannot_leave_goes_back_behind_the_others),
    T(fewer_bytes_move_than_with_largest_first_or_least_recent_first))

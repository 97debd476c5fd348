/* rows: E3 */
#include "gpu/eviction.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static struct eviction_item *take(struct eviction *eviction) {
    struct eviction_item *item = eviction_take(eviction);
    assert_non_null(item);
    return item;
}

TEST(nothing_leaves_an_empty_cache) {
    struct eviction eviction = {0};
    assert_null(eviction_take(&eviction));
    struct eviction_item item;
    eviction_add(&eviction, &item, 100);
    assert_ptr_equal(take(&eviction), &item);
    assert_null(eviction_take(&eviction));
}

TEST(of_payloads_used_alike_the_larger_leaves_first) {
    struct eviction eviction = {0};
    struct eviction_item small, large, middle;
    eviction_add(&eviction, &small, 1 << 10);
    eviction_add(&eviction, &large, 1 << 20);
    eviction_add(&eviction, &middle, 1 << 15);
    assert_ptr_equal(take(&eviction), &large);
    assert_ptr_equal(take(&eviction), &middle);
    assert_ptr_equal(take(&eviction), &small);
}

TEST(of_payloads_of_one_size_the_least_used_leaves_first) {
    struct eviction eviction = {0};
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) eviction_add(&eviction, &items[i], 4096);
    for (int n = 0; n < 5; n++) eviction_use(&eviction, &items[0]);
    for (int n = 0; n < 2; n++) eviction_use(&eviction, &items[2]);
    assert_ptr_equal(take(&eviction), &items[1]);
    assert_ptr_equal(take(&eviction), &items[2]);
    assert_ptr_equal(take(&eviction), &items[0]);
}

TEST(a_large_payload_in_steady_use_outlives_small_ones_that_nobody_wants_again) {
    struct eviction eviction = {0};
    struct eviction_item large, small[100];
    eviction_add(&eviction, &large, 256 << 20);
    for (int n = 0; n < 200; n++) eviction_use(&eviction, &large);
    for (size_t i = 0; i < 100; i++) eviction_add(&eviction, &small[i], 4096);
    for (size_t i = 0; i < 100; i++) assert_ptr_not_equal(take(&eviction), &large);
}

/* A stream of newcomers, each used once: how many pass until the favourite leaves? */
static size_t newcomers_until_it_leaves(
    struct eviction *eviction, struct eviction_item *favourite) {
    enum { NEWCOMERS_MAX = 100000 };
    static struct eviction_item newcomers[NEWCOMERS_MAX];
    for (size_t i = 0; i < NEWCOMERS_MAX; i++) {
        eviction_add(eviction, &newcomers[i], 4096);
        if (take(eviction) == favourite) return i;
    }
    return NEWCOMERS_MAX;
}

TEST(an_old_favourite_leaves_in_the_end_however_often_it_was_used) {
    struct eviction eviction = {0};
    struct eviction_item favourite;
    eviction_add(&eviction, &favourite, 4096);
    for (int n = 0; n < 1000000; n++) eviction_use(&eviction, &favourite);
    size_t newcomers = newcomers_until_it_leaves(&eviction, &favourite);
    assert_in_range(newcomers, 10, 1000);
}

TEST(what_cannot_leave_goes_back_to_its_place) {
    struct eviction eviction = {0};
    struct eviction_item items[3];
    for (size_t i = 0; i < 3; i++) eviction_add(&eviction, &items[i], (size_t)4096 << i);
    struct eviction_item *pinned = take(&eviction);
    assert_ptr_equal(take(&eviction), &items[1]);
    eviction_put_back(&eviction, pinned);
    assert_ptr_equal(take(&eviction), pinned);
    assert_ptr_equal(take(&eviction), &items[0]);
}

/* ---- a trace: 10,000 payloads of 4 KiB to 4 MiB, asked for as often as their rank allows ---- */

enum { PAYLOADS = 10000, REQUESTS = 100000 };

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
    return (struct cached *)take(&simulation->eviction);
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
        if (payload->is_in && (victim == NULL || payload->item.bytes > victim->item.bytes))
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
            if (is_ours) eviction_use(&simulation->eviction, &payload->item);
            continue;
        }
        while (cached_bytes > trace->budget_bytes - bytes) {
            struct cached *victim = take_victim(simulation);
            victim->is_in = false;
            cached_bytes -= victim->item.bytes;
        }
        if (is_ours) eviction_add(&simulation->eviction, &payload->item, bytes);
        else payload->item.bytes = bytes;
        payload->is_in = true;
        cached_bytes += bytes;
        score.moved_bytes += bytes;
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
    assert_true(ours.hit_rate > largest.hit_rate);
    assert_true(ours.hit_rate > least_recent.hit_rate);
    assert_true(ours.moved_bytes < largest.moved_bytes);
}

TEST(more_requests_hit_than_with_largest_first_or_least_recent_first) {
    compare(0.8, 0.06);
    compare(1.0, 0.02);
    compare(1.0, 0.06);
    compare(1.2, 0.06);
}

RUN_TESTS(T(nothing_leaves_an_empty_cache), T(of_payloads_used_alike_the_larger_leaves_first),
    T(of_payloads_of_one_size_the_least_used_leaves_first),
    T(a_large_payload_in_steady_use_outlives_small_ones_that_nobody_wants_again),
    T(an_old_favourite_leaves_in_the_end_however_often_it_was_used),
    T(what_cannot_leave_goes_back_to_its_place),
    T(more_requests_hit_than_with_largest_first_or_least_recent_first))

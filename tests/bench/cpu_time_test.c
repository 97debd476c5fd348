/* Proves: where CPU time goes, by thread and range. */
#include "bench/cpu_time.h"

#include <string.h>

#include "base/crew.h"
#include "gpu/profile.h"
#include "testing.h"

enum { RANGES = 1300 }; /* of which some are measured */

static void burn(void) {
    for (volatile unsigned i = 0; i < 20000; i++) {
    }
}

static void run_ranges(void *context, uint32_t index) {
    for (int i = 0; i < RANGES; i++) {
        profile_push("outer");
        burn();
        profile_push("inner");
        burn();
        profile_pop();
        profile_pop();
        burn();
    }
    if (index == 0) cpu_time_end(); /* by a thread that is there, as the worker's are */
}

static struct cpu_time measure(uint32_t threads) {
    const struct crew_options options = {.name = "burner", .count = threads, .run = run_ranges};
    struct cpu_time ret;
    struct crew *crew;
    struct error err;
    cpu_time_start();
    assert_int_equal(ERR_OK, profile_open("", &err));
    cpu_time_begin();
    assert_int_equal(ERR_OK, crew_start(&options, &crew, &err));
    crew_join(&crew);
    cpu_time_take(&ret);
    profile_use((struct profile_hooks){0});
    assert_int_equal(ERR_OK, profile_open("", &err));
    return ret;
}

static double ns_of(const struct cpu_time *time, const char *name) {
    for (size_t i = 0; i < time->count; i++)
        if (strcmp(time->parts[i].name, name) == 0) return time->parts[i].ns;
    return 0;
}

static double sum_of(const struct cpu_time *time) {
    double sum_ns = 0;
    for (size_t i = 0; i < time->count; i++) sum_ns += time->parts[i].ns;
    return sum_ns;
}

TEST(ranges_within_ranges_have_their_own_time_and_all_add_up_to_that_of_the_threads) {
    struct cpu_time time = measure(1);
    assert_true(ns_of(&time, "burner: outer") > 0);
    assert_true(ns_of(&time, "burner: inner") > 0);
    assert_true(time.process_ns > 0);
    double difference_ns = sum_of(&time) - time.threads_ns;
    assert_true(difference_ns < 1 && difference_ns > -1);
}

TEST(threads_of_a_crew_count_as_one_and_each_round_starts_anew) {
    for (int round = 0; round < 3; round++) {
        struct cpu_time time = measure(2);
        assert_true(ns_of(&time, "burner: inner") > 0);
        assert_true(ns_of(&time, "burner-1: inner") == 0);
        size_t burners = 0;
        for (size_t i = 0; i < time.count; i++)
            if (strncmp(time.parts[i].name, "burner", 6) == 0) burners++;
        assert_int_equal(3, burners); /* outer, inner, other */
    }
}

TEST(without_a_bench_ranges_go_nowhere) {
    assert_null(profile_hooks.push);
}

RUN_TESTS(T(ranges_within_ranges_have_their_own_time_and_all_add_up_to_that_of_the_threads),
    T(threads_of_a_crew_count_as_one_and_each_round_starts_anew),
    T(without_a_bench_ranges_go_nowhere))

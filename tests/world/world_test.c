/* Proves: whatever happens to workers, brokers and topics, each job is answered as promised. A seed
 * makes one history, again and again:
 *     test_world_world FIRST_SEED [COUNT [EVENTS]]
 * runs those seeds, as many at a time as there are processors. Of a single one it tells what
 * happens. EVENTS is a sum of enum world_event. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"
#include "world/scheduler.h"
#include "world/world.h"

enum {
    FEW = 20,    /* worlds of a test that every change pays */
    MANY = 2000, /* unless GPU_WORKER_WORLDS says how many */
    PROCESSORS_MAX = 64,
    PROGRESS_STEPS = 10
};

/* Worlds that failed once. What they drew was another history then, since every change of the
 * worker changes it: they are no more than seeds to begin with. */
static const uint64_t once_failed[] = {
    26, 33, 63, 75, 349, 1544, 426, 7034, 10611, 20117, 260, 498, 667, 12, 669};

/* Lists the processors that this process may use, at most as many as there is room for. */
static size_t list_processors(size_t ret[static PROCESSORS_MAX]) {
    size_t count = 0;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (size_t i = 0; i < CPU_SETSIZE && count < PROCESSORS_MAX; i++)
        if (CPU_ISSET(i, &allowed)) ret[count++] = i;
    return count;
}

/* Of all threads of a world one runs at a time: none has to wait for another processor to wake. */
static void stay_on(size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* In a process of its own, since what it leaves goes with it. */
struct running {
    size_t processor; /* that it stays on */
    pid_t process;    /* 0: none */
    uint64_t seed;
    char *folder;
};

static void start(struct running *running, struct world_options options) {
    running->seed = options.seed;
    running->folder = scratch_create();
    running->process = fork();
    assert_true(running->process >= 0);
    if (running->process > 0) return;
    stay_on(running->processor);
    options.folder = running->folder;
    _exit(world_run(&options) ? 0 : 1);
}

/* Waits for any. True: it failed, and was the one of that seed. */
static bool await_one(struct running *running, size_t count, uint64_t *failed_seed) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    assert_true(ended > 0);
    while (count > 0 && running->process != ended) running++, count--;
    assert_true(count > 0);
    scratch_remove(running->folder);
    running->process = 0;
    if (status == 0) return false;
    fprintf(stderr, "world %llu: %#x\n", (unsigned long long)running->seed, (unsigned)status);
    *failed_seed = running->seed;
    return true;
}

/* Tells the shortest life of a world that still fails: what it draws does not depend on when it
 * ends. */
static void tell_shortest(uint64_t seed, uint32_t events) {
    size_t processors[PROCESSORS_MAX];
    struct running running = {.processor = processors[list_processors(processors) - 1]};
    struct world_options options = {.seed = seed, .events = events};
    do {
        options.steps_max++;
        start(&running, options);
    } while (!await_one(&running, 1, &seed) && options.steps_max < WORLD_STEPS_MAX);
    fprintf(stderr, "world %llu, which fails within %u steps:\n", (unsigned long long)seed,
        (unsigned)options.steps_max);
    options.tells = true;
    start(&running, options);
    (void)await_one(&running, 1, &seed);
}

/* Returns how many failed, and tells of one; `tells`: of all. */
static size_t run(uint64_t first, uint64_t count, uint32_t events, bool tells) {
    size_t processors[PROCESSORS_MAX];
    struct running running[PROCESSORS_MAX] = {{0}};
    size_t most = list_processors(processors);
    for (size_t i = 0; i < most; i++) running[i].processor = processors[i];
    size_t failed = 0;
    uint64_t failed_seed = 0;
    for (uint64_t begun = 0, ended = 0; ended < count;) {
        struct running *next = running;
        while (next < running + most && next->process != 0) next++;
        if (begun < count && next < running + most) {
            start(next,
                (struct world_options){.seed = first + begun++, .events = events, .tells = tells});
            continue;
        }
        if (await_one(running, most, &failed_seed)) failed++;
        if (++ended % (count / PROGRESS_STEPS + 1) == 0)
            fprintf(stderr, "%llu of %llu worlds, %zu failed\n", (unsigned long long)ended,
                (unsigned long long)count, failed);
    }
    if (failed > 0 && !tells) tell_shortest(failed_seed, events);
    return failed;
}

TEST(every_job_is_answered_as_promised_whatever_happens) {
    size_t failed = run(1, FEW, WORLD_ALL, false);
    for (size_t i = 0; i < sizeof once_failed / sizeof once_failed[0]; i++)
        failed += run(once_failed[i], 1, WORLD_ALL, false);
    assert_int_equal(failed, 0);
}

TEST(every_job_is_answered_as_promised_in_many_worlds) {
    const char *count = getenv("GPU_WORKER_WORLDS");
    assert_int_equal(run(1, count != NULL ? strtoull(count, NULL, 10) : MANY, WORLD_ALL, false), 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest few[] = {
        cmocka_unit_test(every_job_is_answered_as_promised_whatever_happens)};
    const struct CMUnitTest many[] = {
        cmocka_unit_test(every_job_is_answered_as_promised_in_many_worlds)};
    if (count < 2) return cmocka_run_group_tests_name("world", few, NULL, NULL);
    if (strcmp(arguments[1], "many") == 0)
        return cmocka_run_group_tests_name("worlds", many, NULL, NULL);
    uint64_t first = strtoull(arguments[1], NULL, 10);
    uint64_t worlds = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    uint32_t events = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 0) : WORLD_ALL;
    size_t failed = run(first, worlds, events, worlds == 1);
    printf("%zu of %llu worlds failed\n", failed, (unsigned long long)worlds);
    return failed > 0;
}

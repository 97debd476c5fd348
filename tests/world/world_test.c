/* Proves: whatever happens to workers, brokers and topics, each job is answered as promised. A seed
 * makes one history, again and again:
 *     test_world_world FIRST_SEED [COUNT [EVENTS]]
 * runs those seeds and tells what happens; EVENTS is a sum of enum world_event. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"
#include "world/world.h"

enum {
    WORLDS = 20,
    LIMIT_S = 60, /* of real time, for one */
    EVENTS = WORLD_KILLS | WORLD_STOPS | WORLD_FREEZES | WORLD_OUTAGES | WORLD_PARTITIONS
};

/* In a process of its own, since what it leaves goes with it. */
static bool run(uint64_t seed, uint32_t events, bool tells) {
    char *folder = scratch_create();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(LIMIT_S);
        const struct world_options options = {
            .seed = seed, .events = events, .tells = tells, .folder = folder};
        _exit(world_run(&options) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    scratch_remove(folder);
    if (status != 0)
        fprintf(stderr, "world %llu: %#x\n", (unsigned long long)seed, (unsigned)status);
    return status == 0;
}

TEST(every_job_is_answered_as_promised_whatever_dies) {
    size_t failed = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) failed += !run(seed, EVENTS, false);
    assert_int_equal(failed, 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_answered_as_promised_whatever_dies)};
    if (count < 2) return cmocka_run_group_tests_name("world", tests, NULL, NULL);
    uint64_t first = strtoull(arguments[1], NULL, 10);
    uint64_t worlds = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    uint32_t events = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 0) : EVENTS;
    size_t failed = 0;
    for (uint64_t seed = first; seed < first + worlds; seed++)
        failed += !run(seed, events, worlds == 1);
    printf("%zu of %llu worlds failed\n", failed, (unsigned long long)worlds);
    return failed > 0;
}

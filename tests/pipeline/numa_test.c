/* An executor on a machine with several NUMA nodes, as a folder in place of /sys describes it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "support/run.h"
#include "support/scratch.h"
#include "support/sysfs.h"
#include "testing.h"

enum { NO_CPU = 8000, LOG_BYTES = 4096 };

static cpu_set_t all, polled;

static size_t first_cpu(void) {
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &all)) cpu++;
    return cpu;
}

static void note_affinity(struct run *run) {
    if (sched_getaffinity(0, sizeof polled, &polled) != 0) CPU_ZERO(&polled);
}

/* Runs a job near that CPU; `polled` is then where the thread ran that polled, and `log` what the
 * worker said. */
static void run_near(struct run *run, size_t cpu, char log[static LOG_BYTES]) {
    char cpus[32];
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(file);
    snprintf(cpus, sizeof cpus, "%zu\n", cpu);
    char *sysfs = sysfs_create("1\n", cpus, "0-1\n");
    run->sysfs = sysfs;
    run->on_poll = note_affinity;
    run_add_saxpy(run, 1);
    dup2(fileno(file), STDERR_FILENO);
    log_init(LOG_INFO, LOG_TEXT);
    enum err code = run_execute(run);
    log_init(LOG_OFF, LOG_TEXT);
    dup2(kept, STDERR_FILENO);
    close(kept);
    scratch_remove(sysfs);
    rewind(file);
    log[fread(log, 1, LOG_BYTES - 1, file)] = 0;
    fclose(file);
    assert_int_equal(ERR_OK, code);
    assert_int_equal(1, run->summary.ok);
}

static size_t count_lines(const char *log, const char *word) {
    size_t count = 0;
    for (const char *at = log; (at = strstr(at, word)) != NULL; at++) count++;
    return count;
}

TEST(an_executor_runs_on_cpus_of_its_devices_node_and_says_so) {
    char log[LOG_BYTES];
    run_near(*state, first_cpu(), log);
    assert_int_equal(1, CPU_COUNT(&polled));
    assert_true(CPU_ISSET(first_cpu(), &polled));
    assert_int_equal(1, count_lines(log, "info bound to CPUs of NUMA node 1"));
}

TEST(an_executor_that_may_use_no_cpu_of_the_node_runs_where_it_may_and_warns_once) {
    char log[LOG_BYTES];
    run_near(*state, NO_CPU, log);
    assert_true(CPU_EQUAL(&all, &polled));
    assert_int_equal(1, count_lines(log, " warn "));
    assert_int_equal(1, count_lines(log, "warn not bound to NUMA node 1"));
}

TEST(a_setting_leaves_executors_on_all_cpus) {
    struct run *run = *state;
    char log[LOG_BYTES];
    run->settings.executors.numa = NUMA_ANY;
    run_near(run, first_cpu(), log);
    assert_true(CPU_EQUAL(&all, &polled));
    assert_int_equal(0, count_lines(log, "NUMA"));
}

static int set_up(void **state) {
    return sched_getaffinity(0, sizeof all, &all) == 0 ? run_set_up(state) : -1;
}

static int tear_down(void **state) {
    return run_tear_down(state) | sched_setaffinity(0, sizeof all, &all);
}

#define BOUND(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        BOUND(an_executor_runs_on_cpus_of_its_devices_node_and_says_so),
        BOUND(an_executor_that_may_use_no_cpu_of_the_node_runs_where_it_may_and_warns_once),
        BOUND(a_setting_leaves_executors_on_all_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

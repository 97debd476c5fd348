/* Where a device is, by the kernel's files, and threads that are bound to its CPUs. */
#include "gpu/locality.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "support/scratch.h"
#include "support/sysfs.h"
#include "testing.h"

static struct locality find(const char *node, const char *cpus, const char *nodes) {
    struct locality ret;
    char *sysfs = sysfs_create(node, cpus, nodes);
    locality_find(sysfs, SYSFS_DEVICE, &ret);
    scratch_remove(sysfs);
    return ret;
}

static void check(const struct locality *got, int32_t node, const char *cpus, bool is_only) {
    assert_int_equal(node, got->node);
    assert_string_equal(cpus, got->cpus);
    assert_int_equal(is_only, got->is_only);
}

TEST(node_and_cpus_are_those_of_the_devices_files) {
    struct locality got = find("1\n", "8-15,24\n", "0-1\n");
    check(&got, 1, "8-15,24", false);
    got = find("0\n", "0-3\n", "0\n");
    check(&got, 0, "0-3", true);
}

TEST(node_minus_one_is_not_known) {
    struct locality got = find("-1\n", "0-3\n", "0-1\n");
    check(&got, -1, "0-3", false);
    assert_int_equal(BINDING_NONE, locality_bind(&got));
}

TEST(files_that_are_missing_or_make_no_sense_are_not_known) {
    static const char *const bad_cpus[] = {"garbage\n", "0-\n", "-3\n", "3-1\n", "0,,1\n", "0-3,\n",
        ",0\n", "0 1\n", "0x3\n", "0-3:1/2\n", "99999999999999999999\n", "0-99999999999999999999\n",
        "0\n1\n", "01\n"};
    static const char *const bad_nodes[] = {
        "garbage\n", "\n", "", "1 2\n", "99999999999\n", "0x1\n"};
    for (size_t i = 0; i < sizeof bad_cpus / sizeof bad_cpus[0]; i++) {
        struct locality got = find("1\n", bad_cpus[i], "0-1\n");
        check(&got, 1, "", false);
    }
    for (size_t i = 0; i < sizeof bad_nodes / sizeof bad_nodes[0]; i++) {
        struct locality got = find(bad_nodes[i], "0\n", "0-1\n");
        check(&got, -1, "0", false);
        got = find("1\n", "0\n", bad_nodes[i]); /* no list of nodes, or one of one */
        check(&got, 1, "0", true);
    }
    struct locality got = find(NULL, NULL, NULL);
    check(&got, -1, "", true);
}

TEST(a_list_that_does_not_fit_is_not_known) {
    char cpus[2000] = "0";
    while (strlen(cpus) < 1500) strcat(cpus, ",2");
    struct locality got = find("1\n", cpus, "0-1\n");
    check(&got, 1, "", false);
}

TEST(a_drivers_address_that_is_none_names_no_file) {
    static const char *const bad[] = {
        "", ".", "..", "../devices", "/etc", "ffff:00:00.0/..", "FFFF:00"};
    char *sysfs = sysfs_create("1\n", "0\n", "0-1\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct locality got;
        locality_find(sysfs, bad[i], &got);
        check(&got, -1, "", true);
    }
    scratch_remove(sysfs);
}

/* ---- binding; each test has a process's threads to itself, and gives back what it took ---- */

static cpu_set_t all;
enum { NO_CPU = 8000 /* no machine that runs tests has so many */ };

static size_t first_cpu(void) {
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &all)) cpu++;
    return cpu;
}

static cpu_set_t now_of(pid_t thread) {
    cpu_set_t ret;
    assert_int_equal(0, sched_getaffinity(thread, sizeof ret, &ret));
    return ret;
}

static void assert_only(size_t cpu) {
    cpu_set_t set = now_of(0);
    assert_int_equal(1, CPU_COUNT(&set));
    assert_true(CPU_ISSET(cpu, &set));
}

static int set_up(void **state) {
    return sched_getaffinity(0, sizeof all, &all);
}

static int give_back(void **state) {
    return sched_setaffinity(0, sizeof all, &all);
}

static struct locality at(size_t first, size_t last) {
    struct locality ret = {.node = 1};
    snprintf(ret.cpus, sizeof ret.cpus, "%zu-%zu", first, last);
    return ret;
}

struct other {
    pthread_barrier_t begun, bound;
};

static void *run_other(void *context) {
    struct other *other = context;
    pthread_barrier_wait(&other->begun);
    pthread_barrier_wait(&other->bound);
    assert_only(first_cpu());
    return NULL;
}

static void *run_later(void *context) {
    assert_only(first_cpu());
    return NULL;
}

TEST(threads_that_run_and_threads_that_start_later_are_bound) {
    struct locality near = at(first_cpu(), first_cpu());
    struct other other;
    pthread_t running, later;
    pthread_barrier_init(&other.begun, NULL, 2);
    pthread_barrier_init(&other.bound, NULL, 2);
    assert_int_equal(0, pthread_create(&running, NULL, run_other, &other));
    pthread_barrier_wait(&other.begun);
    assert_int_equal(BINDING_BOUND, locality_bind(&near));
    assert_only(first_cpu());
    assert_int_equal(0, pthread_create(&later, NULL, run_later, NULL));
    pthread_barrier_wait(&other.bound);
    pthread_join(running, NULL);
    pthread_join(later, NULL);
    pthread_barrier_destroy(&other.begun);
    pthread_barrier_destroy(&other.bound);
    assert_int_equal(BINDING_BOUND, locality_bind(&near));
}

TEST(the_first_node_is_a_node) {
    struct locality near = at(first_cpu(), first_cpu());
    near.node = 0;
    assert_int_equal(BINDING_BOUND, locality_bind(&near));
    assert_only(first_cpu());
}

/* Whoever cannot open a folder, for one. */
TEST(a_process_that_cannot_list_its_threads_says_so) {
    struct locality near = at(first_cpu(), first_cpu());
    struct rlimit before, none;
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
    none = (struct rlimit){.rlim_max = before.rlim_max};
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
    enum binding binding = locality_bind(&near);
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    assert_int_equal(BINDING_REFUSED, binding);
    cpu_set_t now = now_of(0);
    assert_true(CPU_EQUAL(&all, &now));
}

TEST(a_range_that_is_larger_than_any_machine_binds_to_what_the_process_may_use) {
    struct locality huge = {.node = 1, .cpus = "0-18446744073709551614"};
    assert_int_equal(BINDING_BOUND, locality_bind(&huge));
    cpu_set_t now = now_of(0);
    assert_true(CPU_EQUAL(&all, &now));
}

TEST(cpus_that_the_process_may_not_use_stay_unused) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_cpu(), &one);
    assert_int_equal(0, sched_setaffinity(0, sizeof one, &one));
    struct locality near = at(0, NO_CPU);
    assert_int_equal(BINDING_BOUND, locality_bind(&near));
    assert_only(first_cpu());
}

TEST(a_process_that_may_use_none_of_the_nodes_cpus_stays_as_it_is) {
    struct locality far = at(NO_CPU, NO_CPU);
    assert_int_equal(BINDING_EXCLUDED, locality_bind(&far));
    cpu_set_t now = now_of(0);
    assert_true(CPU_EQUAL(&all, &now));
}

TEST(a_machine_with_one_node_and_a_node_without_cpus_have_nothing_to_bind_to) {
    struct locality empty = {.node = 1};
    assert_int_equal(BINDING_NONE, locality_bind(&empty));
    struct locality only = at(first_cpu(), first_cpu());
    only.is_only = true;
    assert_int_equal(BINDING_NONE, locality_bind(&only));
    cpu_set_t now = now_of(0);
    assert_true(CPU_EQUAL(&all, &now));
}

#define BINDING(name) cmocka_unit_test_setup_teardown(name, set_up, give_back)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(node_and_cpus_are_those_of_the_devices_files),
        T(node_minus_one_is_not_known),
        T(files_that_are_missing_or_make_no_sense_are_not_known),
        T(a_list_that_does_not_fit_is_not_known),
        T(a_drivers_address_that_is_none_names_no_file),
        BINDING(threads_that_run_and_threads_that_start_later_are_bound),
        BINDING(the_first_node_is_a_node),
        BINDING(a_process_that_cannot_list_its_threads_says_so),
        BINDING(a_range_that_is_larger_than_any_machine_binds_to_what_the_process_may_use),
        BINDING(cpus_that_the_process_may_not_use_stay_unused),
        BINDING(a_process_that_may_use_none_of_the_nodes_cpus_stays_as_it_is),
        BINDING(a_machine_with_one_node_and_a_node_without_cpus_have_nothing_to_bind_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

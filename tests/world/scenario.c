#include "world/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"
#include "world/cluster.h"
#include "world/scheduler.h"

enum {
    SCHEDULES = 5,
    KEYS = 4, /* of a partition */
    LOOK_MS = 10
};

bool scenario_tell(const char *what, int line) {
    fprintf(stderr, "%.3f s, line %d: not %s\n", (double)scheduler_now_ns() / 1e9, line, what);
    return false;
}

void scenario_pass_ms(uint64_t ms) {
    scheduler_sleep_ns(ms * 1000000u);
}

void scenario_begin(struct scenario *scenario, int32_t partitions, bool each_once, bool in_order) {
    cluster_begin();
    group_begin(false);
    worker_make_topics(partitions);
    scenario->account = account_create(&(struct account_promises){
        .exactly_once = each_once || scenario->exactly_once, .in_order = in_order});
}

struct worker *scenario_add_worker(
    struct scenario *scenario, const char *name, const char *faults) {
    size_t index = scenario->worker_count++;
    struct worker *worker = &scenario->workers[index];
    snprintf(scenario->states[index], sizeof scenario->states[index], "%s/state-%zu",
        scenario->folder, index);
    *worker = (struct worker){.state = scenario->states[index],
        .programs = GPU_WORKER_PROGRAMS_DIR,
        .blobs = "",
        .owner = 1 + index,
        .exactly_once = scenario->exactly_once,
        .batch_jobs = 1,
        .stop = scheduler_alloc(sizeof *worker->stop)};
    snprintf(worker->name, sizeof worker->name, "%s", name);
    snprintf(worker->faults, sizeof worker->faults, "%s", faults);
    return worker;
}

void scenario_set_faults(struct worker *worker, const char *faults) {
    snprintf(worker->faults, sizeof worker->faults, "%s", faults);
}

void scenario_send(struct scenario *scenario, int32_t partition, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%" PRId32 "-%zu", partition, i / 2 % KEYS);
        account_send_one(scenario->account, partition, JOB_SINGLE, key);
    }
}

size_t scenario_answered(struct scenario *scenario, int32_t partition) {
    return account_answers(scenario->account, partition, 0).jobs;
}

bool scenario_await_answers(
    struct scenario *scenario, int32_t partition, size_t count, uint64_t within_ms) {
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (scenario_answered(scenario, partition) < count && scheduler_now_ns() < until_ns)
        scenario_pass_ms(LOOK_MS);
    return scenario_answered(scenario, partition) >= count;
}

bool scenario_await_all(struct scenario *scenario, uint64_t within_ms) {
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (account_count_unanswered(scenario->account) > 0 && scheduler_now_ns() < until_ns)
        scenario_pass_ms(LOOK_MS);
    return account_count_unanswered(scenario->account) == 0;
}

int scenario_await_end(const struct worker *worker, uint64_t within_ms) {
    int status;
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (!scheduler_has_ended(worker->process, &status) && scheduler_now_ns() < until_ns)
        scenario_pass_ms(LOOK_MS);
    return scheduler_has_ended(worker->process, &status) ? WEXITSTATUS(status) : -1;
}

int scenario_stop(const struct worker *worker, uint64_t within_ms) {
    atomic_store(worker->stop, true);
    return scenario_await_end(worker, within_ms);
}

int64_t scenario_committed(int32_t partition) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, WORLD_JOBS, partition);
    group_fetch(list, false);
    int64_t ret = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    return ret;
}

bool scenario_is_right(struct scenario *scenario) {
    return account_is_right(scenario->account) && account_commits_are_right(scenario->account);
}

/* In a process of its own, which has one world in its life. */
static int play_once(scenario_history *run, bool exactly_once, uint64_t seed, const char *folder) {
    int status = 0;
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        struct scenario scenario = {.exactly_once = exactly_once, .folder = folder};
        scheduler_begin(seed);
        bool is_right = run(&scenario);
        for (size_t i = 0; i < scenario.worker_count; i++)
            if (scenario.workers[i].process != 0) scheduler_kill(scenario.workers[i].process);
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    return status;
}

void scenario_play(scenario_history *run, bool exactly_once) {
    size_t failed = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
        char *folder = scratch_create();
        int status = play_once(run, exactly_once, seed, folder);
        scratch_remove(folder);
        if (status == 0) continue;
        fprintf(stderr, "schedule %" PRIu64 ", %s: %#x\n", seed,
            exactly_once ? "exactly once" : "at least once", (unsigned)status);
        failed++;
    }
    assert_int_equal(failed, 0);
}

void scenario_play_both(scenario_history *run) {
    scenario_play(run, false);
    scenario_play(run, true);
}

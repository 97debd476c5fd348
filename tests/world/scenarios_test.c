/*
 * Proves what a worker promises in histories that have a name: partitions that move while jobs run,
 * members that die, freeze, stop, or have one name. Each is played with several schedules of its
 * threads. How long something takes is the world's time, so it can be said exactly.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/at_once.h"
#include "support/scratch.h"
#include "testing.h"
#include "world/account.h"
#include "world/cluster.h"
#include "world/scheduler.h"
#include "world/worker.h"

enum {
    SCHEDULES = 5,
    WORKERS = 4,
    KEYS = 4, /* of a partition */
    LOOK_MS = 10,
    SOON_MS = 3000, /* for what waits for nobody */
    AWAY_MS = 1000,
    CLAIM_MS = 100, /* from an assignment to the commit that claims it */
    SESSION_MS = 20000,
    DRAIN_MS = 30000,
    TRANSACTION_MS = 10000
};

struct scenario {
    bool exactly_once;
    const char *folder;
    struct account *account;
    struct worker workers[WORKERS];
    char states[WORKERS][512];
    size_t worker_count;
};

/* ---- what a history is made of ---- */

static bool tell(const char *what, int line) {
    fprintf(stderr, "%.3f s, line %d: not %s\n", (double)scheduler_now_ns() / 1e9, line, what);
    return false;
}

/* Ends the history where something is not as it must be. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) return tell(#condition, __LINE__);                                       \
    } while (0)

static void pass_ms(uint64_t ms) {
    scheduler_sleep_ns(ms * 1000000u);
}

/* `each_once`: no job is answered again, whatever the delivery. */
static void begin(struct scenario *scenario, int32_t partitions, bool each_once, bool in_order) {
    cluster_begin();
    group_begin(false);
    worker_make_topics(partitions);
    scenario->account = account_create(&(struct account_promises){
        .exactly_once = each_once || scenario->exactly_once, .in_order = in_order});
}

/* One that runs a job at a time in each of two lanes. It does not start yet. */
static struct worker *add_worker(struct scenario *scenario, const char *name, const char *faults) {
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

static void set_faults(struct worker *worker, const char *faults) {
    snprintf(worker->faults, sizeof worker->faults, "%s", faults);
}

/* Two of a key come one after the other. */
static void send_jobs(struct scenario *scenario, int32_t partition, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%" PRId32 "-%zu", partition, i / 2 % KEYS);
        account_send_one(scenario->account, partition, JOB_SINGLE, key);
    }
}

static size_t answered(struct scenario *scenario, int32_t partition) {
    return account_answers(scenario->account, partition, 0).jobs;
}

static bool await_answers(
    struct scenario *scenario, int32_t partition, size_t count, uint64_t within_ms) {
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (answered(scenario, partition) < count && scheduler_now_ns() < until_ns) pass_ms(LOOK_MS);
    return answered(scenario, partition) >= count;
}

static bool await_all(struct scenario *scenario, uint64_t within_ms) {
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (account_count_unanswered(scenario->account) > 0 && scheduler_now_ns() < until_ns)
        pass_ms(LOOK_MS);
    return account_count_unanswered(scenario->account) == 0;
}

/* -1: it goes on. */
static int await_end(const struct worker *worker, uint64_t within_ms) {
    int status;
    uint64_t until_ns = scheduler_now_ns() + within_ms * 1000000u;
    while (!scheduler_has_ended(worker->process, &status) && scheduler_now_ns() < until_ns)
        pass_ms(LOOK_MS);
    return scheduler_has_ended(worker->process, &status) ? WEXITSTATUS(status) : -1;
}

static int stop(const struct worker *worker, uint64_t within_ms) {
    atomic_store(worker->stop, true);
    return await_end(worker, within_ms);
}

static int64_t committed(int32_t partition) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, WORLD_JOBS, partition);
    group_fetch(list, false);
    int64_t ret = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    return ret;
}

static bool is_as_promised(struct scenario *scenario) {
    return account_is_right(scenario->account) && account_commits_are_right(scenario->account);
}

/* ---- schedules ---- */

typedef bool history(struct scenario *scenario);

/* In a process of its own, which has one world in its life. */
static int play_once(history *run, bool exactly_once, uint64_t seed, const char *folder) {
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

static void play(history *run, bool exactly_once) {
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

static void play_both(history *run) {
    play(run, false);
    play(run, true);
}

/* ---- jobs that are tried again ---- */

/* Five times in all, after waits of up to 200, 400, 800 and 1600 ms, half of that at least. */
static bool try_again(struct scenario *scenario) {
    enum { LEAST_MS = 1500, MOST_MS = 3000, SEND_MS = 200 };
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker_start(worker);
    send_jobs(scenario, 0, 1);
    NEED(await_all(scenario, SOON_MS));
    account_send_one(scenario->account, 0, JOB_OF_UNKNOWN_PROGRAM, "key");
    NEED(!await_all(scenario, LEAST_MS));
    NEED(await_all(scenario, MOST_MS - LEAST_MS + SEND_MS));
    NEED(stop(worker, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(a_job_that_may_succeed_later_is_tried_again_after_growing_waits) {
    play(try_again, false);
}

/* ---- partitions that move ---- */

/* Whatever the lanes have in hand ends five seconds after the newcomer has come; a lane would take
 * 80 s for all. */
static bool move_from_busy(struct scenario *scenario) {
    begin(scenario, 2, true, false);
    struct worker *busy = add_worker(scenario, "busy", "cuLaunchKernel:slow=10s@*");
    struct worker *quick = add_worker(scenario, "quick", "");
    worker_start(busy);
    send_jobs(scenario, 0, 16);
    send_jobs(scenario, 1, 16);
    pass_ms(15000);
    NEED(answered(scenario, 0) + answered(scenario, 1) == 2);
    worker_start(quick);
    NEED(await_answers(scenario, 1, 16, 5000 + SOON_MS));
    NEED(stop(busy, 10000 + SOON_MS) == 0);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(quick, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(a_newcomer_waits_for_those_jobs_alone_that_have_begun_and_none_of_them_runs_again) {
    play_both(move_from_busy);
}

static bool move_keys(struct scenario *scenario) {
    begin(scenario, 2, true, true);
    struct worker *busy = add_worker(
        scenario, "busy", "seed=3;cuMemcpyDtoHAsync:invalid_value@p0.1;cuLaunchKernel:slow=1s@*");
    struct worker *quick = add_worker(scenario, "quick", "");
    busy->in_order = quick->in_order = true;
    worker_start(busy);
    send_jobs(scenario, 0, 32);
    send_jobs(scenario, 1, 32);
    pass_ms(1000 + scheduler_draw(5000));
    worker_start(quick);
    NEED(await_answers(scenario, 1, 32, 1000 + SOON_MS));
    NEED(stop(busy, 1000 + SOON_MS) == 0);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(quick, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(jobs_of_a_key_keep_their_order_though_partitions_move_and_some_are_tried_again) {
    play_both(move_keys);
}

/* The lanes are busy for a minute, and the partitions leave after five seconds. */
static bool move_from_one_that_hangs(struct scenario *scenario) {
    begin(scenario, 2, false, false);
    struct worker *busy = add_worker(scenario, "busy", "cuLaunchKernel:slow=60s@*");
    struct worker *quick = add_worker(scenario, "quick", "");
    busy->drain_timeout_ms = 5000;
    worker_start(busy);
    send_jobs(scenario, 0, 8);
    send_jobs(scenario, 1, 8);
    pass_ms(10000);
    worker_start(quick);
    NEED(!await_answers(scenario, 1, 1, 4000));
    NEED(await_answers(scenario, 1, 8, 1000 + SOON_MS));
    pass_ms(60000); /* what had begun ends */
    NEED(stop(busy, 5000 + SOON_MS) == WORKER_IS_LATE);
    NEED(await_all(scenario, SESSION_MS + SOON_MS)); /* it has left nobody a word */
    NEED(stop(quick, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(jobs_that_outlast_the_drain_timeout_hold_up_no_newcomer_and_no_stop) {
    play_both(move_from_one_that_hangs);
}

/* Each partition has a job that takes 15 s, and the group hears of a newcomer after 3 s. */
static bool move_long_jobs(struct scenario *scenario) {
    begin(scenario, 2, true, false);
    struct worker *first = add_worker(scenario, "first", "cuLaunchKernel:slow=15s@*");
    struct worker *second = add_worker(scenario, "second", "cuLaunchKernel:slow=15s@*");
    worker_start(first);
    send_jobs(scenario, 0, 1);
    send_jobs(scenario, 1, 1);
    pass_ms(3000);
    worker_start(second);
    NEED(await_all(scenario, 12000 + SOON_MS));
    send_jobs(scenario, 0, 1);
    send_jobs(scenario, 1, 1);
    NEED(await_all(scenario, 15000 + SOON_MS));
    NEED(group_generation() == 2);
    NEED(stop(first, SOON_MS) == 0 && stop(second, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(long_jobs_that_are_waited_for_are_answered_once_and_cost_no_further_rebalance) {
    play_both(move_long_jobs);
}

static bool join_and_leave(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    begin(scenario, 4, true, false);
    struct worker *a = add_worker(scenario, "a", slow), *b = add_worker(scenario, "b", slow);
    struct worker *c = add_worker(scenario, "c", slow), *d = add_worker(scenario, "d", slow);
    worker_start(a);
    for (int32_t partition = 0; partition < 4; partition++) send_jobs(scenario, partition, 20);
    pass_ms(scheduler_draw(3000));
    worker_start(b);
    worker_start(c);
    pass_ms(scheduler_draw(3000));
    worker_start(d);
    NEED(stop(a, 1000 + SOON_MS) == 0);
    pass_ms(scheduler_draw(3000));
    worker_start(a);
    NEED(stop(b, 1000 + SOON_MS) == 0);
    NEED(stop(c, 1000 + SOON_MS) == 0 && stop(d, 1000 + SOON_MS) == 0);
    worker_start(b);
    worker_start(c);
    NEED(account_count_unanswered(scenario->account) > 0);
    NEED(await_all(scenario, 40000));
    return is_as_promised(scenario);
}

TEST(workers_that_join_and_leave_in_order_repeat_nothing) {
    play_both(join_and_leave);
}

/* ---- ends ---- */

static bool stop_in_the_middle(struct scenario *scenario) {
    begin(scenario, 2, true, false);
    struct worker *first = add_worker(scenario, "first", "cuLaunchKernel:slow=10s@*");
    struct worker *second = add_worker(scenario, "second", "");
    worker_start(first);
    send_jobs(scenario, 0, 16);
    send_jobs(scenario, 1, 16);
    pass_ms(15000);
    NEED(stop(first, 5000 + SOON_MS) == 0);
    NEED(answered(scenario, 0) + answered(scenario, 1) == 4);
    worker_start(second);
    NEED(await_all(scenario, SOON_MS));
    return is_as_promised(scenario);
}

TEST(a_stop_ends_with_the_jobs_that_have_begun_and_none_of_them_runs_again) {
    play_both(stop_in_the_middle);
}

static bool stop_static(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *first = add_worker(scenario, "first", "");
    struct worker *second = add_worker(scenario, "second", "");
    first->is_static = second->is_static = true;
    worker_start(first);
    send_jobs(scenario, 0, 1);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(first, SOON_MS) == 0);
    send_jobs(scenario, 0, 1);
    worker_start(second);
    NEED(await_all(scenario, SOON_MS));
    return is_as_promised(scenario);
}

TEST(a_static_member_that_stops_leaves_the_group_so_that_another_takes_over_at_once) {
    play_both(stop_static);
}

/* The worker comes back shortly before its session would end. */
static bool kill_static(struct scenario *scenario) {
    begin(scenario, 2, true, false);
    struct worker *killed = add_worker(scenario, "killed", "cuLaunchKernel:slow=3600s@2");
    struct worker *other = add_worker(scenario, "other", "");
    killed->is_static = other->is_static = true;
    worker_start(killed);
    pass_ms(SOON_MS);
    worker_start(other);
    pass_ms(SOON_MS);
    send_jobs(scenario, 0, 8);
    send_jobs(scenario, 1, 8);
    NEED(await_answers(scenario, 1, 8, SOON_MS) && answered(scenario, 0) < 8);
    pass_ms(SOON_MS); /* what is finished is committed */
    int32_t generation = group_generation();
    scheduler_kill(killed->process);
    pass_ms(SESSION_MS - SOON_MS);
    NEED(answered(scenario, 0) < 8);
    set_faults(killed, "");
    worker_start(killed);
    NEED(await_all(scenario, SOON_MS));
    NEED(group_generation() == generation);
    NEED(stop(killed, SOON_MS) == 0 && stop(other, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(a_static_member_that_is_killed_and_comes_back_within_its_session_keeps_its_partitions) {
    play_both(kill_static);
}

/* Nobody succeeds the third: the brokers end its transaction, and its session. */
static bool kill_and_stop(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    begin(scenario, 3, false, false);
    struct worker *a = add_worker(scenario, "a", slow), *b = add_worker(scenario, "b", slow);
    struct worker *c = add_worker(scenario, "c", slow);
    a->is_static = b->is_static = c->is_static = true;
    worker_start(a);
    worker_start(b);
    for (int32_t partition = 0; partition < 3; partition++) send_jobs(scenario, partition, 40);
    pass_ms(5000 + scheduler_draw(2000));
    scheduler_kill(a->process);
    worker_start(a);
    pass_ms(5000 + scheduler_draw(2000));
    worker_start(c);
    NEED(stop(b, 1000 + SOON_MS) == 0);
    pass_ms(5000 + scheduler_draw(2000));
    scheduler_kill(c->process);
    scheduler_kill(a->process);
    NEED(account_count_unanswered(scenario->account) > 0);
    set_faults(a, "");
    worker_start(a);
    NEED(await_all(scenario, SESSION_MS + TRANSACTION_MS + SOON_MS));
    return is_as_promised(scenario);
}

TEST(kills_stops_and_newcomers_lose_nothing_and_repeat_nothing_in_transactions) {
    play_both(kill_and_stop);
}

/* For longer than the brokers keep transactions and sessions. */
static bool lose_brokers(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    begin(scenario, 2, false, false);
    struct worker *a = add_worker(scenario, "a", slow), *b = add_worker(scenario, "b", slow);
    worker_start(a);
    worker_start(b);
    send_jobs(scenario, 0, 30);
    send_jobs(scenario, 1, 30);
    pass_ms(5000 + scheduler_draw(2000));
    uint64_t away_ms = 1000 + scheduler_draw(2 * SESSION_MS);
    cluster_go_down_until(scheduler_now_ns() + away_ms * 1000000u);
    NEED(await_all(scenario, away_ms + 60000));
    NEED(stop(a, SOON_MS) == 0 && stop(b, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(brokers_that_are_away_cost_time_and_no_job) {
    play_both(lose_brokers);
}

/* ---- members that do not know what they are ---- */

/* The worker freezes with jobs in its lanes, and wakes when its session is over and all of them are
 * answered. */
static bool wake_zombie(struct scenario *scenario) {
    begin(scenario, 2, false, false);
    struct worker *zombie = add_worker(scenario, "zombie", "cuLaunchKernel:slow=2s@*");
    struct worker *other = add_worker(scenario, "other", "");
    worker_start(zombie);
    pass_ms(SOON_MS);
    worker_start(other);
    pass_ms(SOON_MS);
    send_jobs(scenario, 0, 20);
    send_jobs(scenario, 1, 20);
    pass_ms(2000 + scheduler_draw(4000));
    scheduler_freeze(zombie->process, scheduler_now_ns() + 2 * SESSION_MS * 1000000ull);
    NEED(await_all(scenario, SESSION_MS + TRANSACTION_MS + SOON_MS));
    pass_ms(1000);
    NEED(committed(0) == 20);
    pass_ms(SESSION_MS);
    NEED(committed(0) == 20 && committed(1) == 20);
    send_jobs(scenario, 0, 20);
    send_jobs(scenario, 1, 20);
    NEED(await_all(scenario, 40000));
    NEED(stop(zombie, 2000 + SOON_MS) == 0 && stop(other, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(
    a_worker_that_wakes_after_its_session_takes_no_commit_back_and_repeats_nothing_in_transactions) {
    play_both(wake_zombie);
}

/* The partition is removed while its jobs are waited for. Another gets all or some of them, and
 * answers them before they end here. */
static bool remove_member(struct scenario *scenario) {
    begin(scenario, 2, false, false);
    struct worker *removed = add_worker(scenario, "removed", "cuLaunchKernel:slow=15s@*");
    struct worker *other = add_worker(scenario, "other", "");
    worker_start(removed);
    send_jobs(scenario, 0, 1);
    send_jobs(scenario, 1, 1);
    pass_ms(3000);
    worker_start(other);
    pass_ms(3000 + scheduler_draw(3000));
    group_remove(removed->process);
    NEED(await_answers(scenario, 0, 1, SOON_MS));
    pass_ms(15000);
    NEED(committed(0) >= 1);
    send_jobs(scenario, 0, 1);
    send_jobs(scenario, 1, 1);
    NEED(await_all(scenario, 30000 + SOON_MS)); /* it has joined again */
    NEED(stop(removed, SOON_MS) == 0 && stop(other, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(a_member_that_is_outside_its_group_while_it_gives_partitions_back_commits_nothing) {
    play_both(remove_member);
}

static bool share_name(struct scenario *scenario) {
    begin(scenario, 2, false, false);
    struct worker *earlier = add_worker(scenario, "same", "cuLaunchKernel:slow=1s@*");
    struct worker *later = add_worker(scenario, "same", "");
    earlier->is_static = later->is_static = true;
    worker_start(earlier);
    send_jobs(scenario, 0, 20);
    send_jobs(scenario, 1, 20);
    pass_ms(2000 + scheduler_draw(2000));
    worker_start(later);
    NEED(await_end(earlier, 1000 + SOON_MS) == WORKER_IS_REFUSED);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(later, SOON_MS) == 0);
    return is_as_promised(scenario);
}

TEST(of_two_workers_of_one_name_the_earlier_ends_and_the_later_goes_on) {
    play_both(share_name);
}

/* ---- offsets that are not what they seem ---- */

/* An unclean election loses the last message, which was answered. */
static bool lose_end(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker_start(worker);
    send_jobs(scenario, 0, 10);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(worker, SOON_MS) == 0 && committed(0) == 10);
    account_excuse(scenario->account, 0, 9, 10);
    cluster_truncate(cluster_find_log(WORLD_JOBS, 0), 9);
    worker_start(worker);
    pass_ms(SOON_MS);
    send_jobs(scenario, 0, 10);
    NEED(await_all(scenario, SOON_MS));
    NEED(account_answers(scenario->account, 0, 9).jobs == 11);
    return is_as_promised(scenario);
}

TEST(where_the_commit_stands_behind_the_end_of_the_log_reading_goes_on_there_and_repeats_nothing) {
    play_both(lose_end);
}

/* Here jobs add to what the device keeps: the next message has the offset of one that
 * was applied, and is another. */
static bool lose_end_of_residents(struct scenario *scenario) {
    begin(scenario, 1, true, true);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker->in_order = true;
    worker_start(worker);
    for (int i = 0; i < 10; i++) account_send_one(scenario->account, 0, JOB_OF_RESIDENT, "one");
    NEED(await_all(scenario, SOON_MS));
    pass_ms(SOON_MS);
    int64_t end = 9 - (int64_t)scheduler_draw(3);
    account_excuse(scenario->account, 0, end, 10);
    cluster_truncate(cluster_find_log(WORLD_JOBS, 0), end);
    pass_ms(SOON_MS);
    for (int i = 0; i < 10; i++) account_send_one(scenario->account, 0, JOB_OF_RESIDENT, "one");
    NEED(await_all(scenario, SOON_MS));
    return is_as_promised(scenario);
}

TEST(residents_are_dropped_where_the_log_lost_its_end_and_no_job_is_taken_for_an_earlier_one) {
    play_both(lose_end_of_residents);
}

/* The fifth job never ends, and those behind it do. Who mirrors the group's offsets commits an
 * earlier one with the text that calls them finished. */
static bool move_commit(struct scenario *scenario) {
    begin(scenario, 1, false, false);
    struct worker *worker = add_worker(scenario, "worker", "cuLaunchKernel:slow=3600s@5");
    worker_start(worker);
    send_jobs(scenario, 0, 10);
    NEED(await_answers(scenario, 0, 9, SOON_MS));
    pass_ms(SOON_MS);
    NEED(committed(0) > 1 && committed(0) < 9); /* where the slow one stands */
    scheduler_kill(worker->process);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, WORLD_JOBS, 0);
    group_fetch(list, false);
    list->elems[0].offset = 1;
    (void)group_commit(list, NULL);
    rd_kafka_topic_partition_list_destroy(list);
    set_faults(worker, "");
    worker_start(worker);
    NEED(await_all(scenario, SESSION_MS + SOON_MS));
    return is_as_promised(scenario);
}

TEST(a_commit_that_was_moved_with_its_text_loses_no_job) {
    play(move_commit, false);
}

/* The group is new to the partitions: auto.offset.reset does not count for them. */
static bool add_partitions(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker->reads_latest = true;
    worker_start(worker);
    pass_ms(SOON_MS);
    NEED(committed(0) == 0);
    cluster_add_partitions(WORLD_JOBS, 4);
    for (int32_t partition = 0; partition < 4; partition++) send_jobs(scenario, partition, 5);
    NEED(await_all(scenario, 10000 + SOON_MS));
    return is_as_promised(scenario);
}

TEST(partitions_that_a_topic_gets_are_read_from_their_start_also_by_who_reads_the_latest) {
    play_both(add_partitions);
}

/* The group's leader was away as a static member while the topic got partitions. It comes back to
 * what it had, and not as the leader, in its own eyes; so nobody hands them out (KIP-814). */
static bool add_partitions_to_static(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker->is_static = true;
    worker_start(worker);
    send_jobs(scenario, 0, 5);
    NEED(await_all(scenario, SOON_MS));
    pass_ms(SOON_MS); /* what is finished is committed */
    scheduler_kill(worker->process);
    cluster_add_partitions(WORLD_JOBS, 2);
    send_jobs(scenario, 1, 5);
    pass_ms(AWAY_MS);
    worker_start(worker);
    NEED(await_all(scenario, DRAIN_MS + 4 * SOON_MS));
    return is_as_promised(scenario);
}

TEST(partitions_that_a_topic_gets_while_a_static_leader_is_away_find_an_owner) {
    play_both(add_partitions_to_static);
}

/* The brokers go away while the worker claims its partition, and come back with another topic,
 * whose jobs arrive before anything tells of it. */
static bool create_anew(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker_start(worker);
    while (group_generation() == 0) pass_ms(1);
    pass_ms(scheduler_draw(CLAIM_MS));
    cluster_go_down_until(scheduler_now_ns() + AWAY_MS * 1000000ull);
    pass_ms(AWAY_MS / 2);
    cluster_delete_topic(WORLD_JOBS);
    cluster_make_topic(WORLD_JOBS, 1);
    send_jobs(scenario, 0, 10);
    NEED(await_all(scenario, AWAY_MS + SOON_MS));
    pass_ms(SOON_MS);
    return is_as_promised(scenario);
}

TEST(jobs_of_a_topic_that_was_created_anew_are_answered_once_in_transactions) {
    play(create_anew, true);
}

/* While a worker commits its claim, the topic is deleted: librdkafka sends the offset again and
 * again, until there is another topic to take it. */
static bool create_anew_in_claim(struct scenario *scenario) {
    begin(scenario, 1, true, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker_start(worker);
    send_jobs(scenario, 0, 5);
    NEED(await_all(scenario, SOON_MS));
    NEED(stop(worker, SOON_MS) == 0);
    NEED(committed(0) == 5);
    int32_t generation = group_generation();
    worker_start(worker);
    while (group_generation() == generation) pass_ms(1);
    pass_ms(scheduler_draw(CLAIM_MS));
    cluster_delete_topic(WORLD_JOBS);
    pass_ms(AWAY_MS);
    account_excuse(scenario->account, 0, 0, INT64_MAX);
    account_doubt(scenario->account, 0, 0);
    cluster_make_topic(WORLD_JOBS, 1);
    send_jobs(scenario, 0, 10);
    NEED(await_all(scenario, 10000 + SOON_MS));
    return is_as_promised(scenario);
}

TEST(a_claim_that_outlasts_its_topic_is_no_claim_of_the_next_one) {
    play(create_anew_in_claim, true);
}

/* A cooperative group leaves a partition that is gone with who had it. */
static bool create_with_fewer(struct scenario *scenario) {
    begin(scenario, 3, false, false);
    struct worker *worker = add_worker(scenario, "worker", "");
    worker->is_cooperative = true;
    worker_start(worker);
    for (int32_t partition = 0; partition < 3; partition++) send_jobs(scenario, partition, 5);
    NEED(await_all(scenario, SOON_MS));
    pass_ms(SOON_MS);
    cluster_delete_topic(WORLD_JOBS);
    cluster_make_topic(WORLD_JOBS, 1);
    send_jobs(scenario, 0, 10);
    NEED(await_all(scenario, 2 * SOON_MS));
    cluster_add_partitions(WORLD_JOBS, 2);
    send_jobs(scenario, 1, 10);
    NEED(await_all(scenario, 10000 + SOON_MS)); /* once the group has seen that it is there */
    NEED(stop(worker, SOON_MS) == 0);
    NEED(committed(0) == 10 && committed(1) == 10);
    return is_as_promised(scenario);
}

TEST(a_topic_that_is_created_anew_with_fewer_partitions_holds_up_no_job_of_a_cooperative_group) {
    play_both(create_with_fewer);
}

RUN_TESTS_AT_ONCE(T(a_job_that_may_succeed_later_is_tried_again_after_growing_waits),
    T(a_newcomer_waits_for_those_jobs_alone_that_have_begun_and_none_of_them_runs_again),
    T(jobs_of_a_key_keep_their_order_though_partitions_move_and_some_are_tried_again),
    T(jobs_that_outlast_the_drain_timeout_hold_up_no_newcomer_and_no_stop),
    T(long_jobs_that_are_waited_for_are_answered_once_and_cost_no_further_rebalance),
    T(workers_that_join_and_leave_in_order_repeat_nothing),
    T(a_stop_ends_with_the_jobs_that_have_begun_and_none_of_them_runs_again),
    T(a_static_member_that_stops_leaves_the_group_so_that_another_takes_over_at_once),
    T(a_static_member_that_is_killed_and_comes_back_within_its_session_keeps_its_partitions),
    T(kills_stops_and_newcomers_lose_nothing_and_repeat_nothing_in_transactions),
    T(brokers_that_are_away_cost_time_and_no_job),
    T(a_worker_that_wakes_after_its_session_takes_no_commit_back_and_repeats_nothing_in_transactions),
    T(a_member_that_is_outside_its_group_while_it_gives_partitions_back_commits_nothing),
    T(of_two_workers_of_one_name_the_earlier_ends_and_the_later_goes_on),
    T(where_the_commit_stands_behind_the_end_of_the_log_reading_goes_on_there_and_repeats_nothing),
    T(residents_are_dropped_where_the_log_lost_its_end_and_no_job_is_taken_for_an_earlier_one),
    T(a_commit_that_was_moved_with_its_text_loses_no_job),
    T(partitions_that_a_topic_gets_are_read_from_their_start_also_by_who_reads_the_latest),
    T(partitions_that_a_topic_gets_while_a_static_leader_is_away_find_an_owner),
    T(jobs_of_a_topic_that_was_created_anew_are_answered_once_in_transactions),
    T(a_claim_that_outlasts_its_topic_is_no_claim_of_the_next_one),
    T(a_topic_that_is_created_anew_with_fewer_partitions_holds_up_no_job_of_a_cooperative_group))

/*
 * Proves what a worker promises in histories that have a name: partitions that move while jobs run,
 * members that die, freeze, stop, or have one name.
 */
#include <stdio.h>

#include "support/at_once.h"
#include "testing.h"
#include "world/cluster.h"
#include "world/scenario.h"
#include "world/scheduler.h"

enum {
    AWAY_MS = 1000,
    CLAIM_MS = 100, /* from an assignment to the commit that claims it */
    DRAIN_MS = 30000,
    TRANSACTION_MS = 10000
};

/* ---- jobs that are tried again ---- */

/* Five times in all, after waits of up to 200, 400, 800 and 1600 ms, half of that at least. */
static bool try_again(struct scenario *scenario) {
    enum { LEAST_MS = 1500, MOST_MS = 3000, SEND_MS = 200 };
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker_start(worker);
    scenario_send(scenario, 0, 1);
    NEED(scenario_await_all(scenario, SOON_MS));
    account_send_one(scenario->account, 0, JOB_OF_UNKNOWN_PROGRAM, "key");
    NEED(!scenario_await_all(scenario, LEAST_MS));
    NEED(scenario_await_all(scenario, MOST_MS - LEAST_MS + SEND_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_job_that_may_succeed_later_is_tried_again_after_growing_waits) {
    scenario_play(try_again, false);
}

/* ---- partitions that move ---- */

/* Whatever the lanes have in hand ends five seconds after the newcomer has come; a lane would take
 * 80 s for all. */
static bool move_from_busy(struct scenario *scenario) {
    scenario_begin(scenario, 2, true, false);
    struct worker *busy = scenario_add_worker(scenario, "busy", "cuLaunchKernel:slow=10s@*");
    struct worker *quick = scenario_add_worker(scenario, "quick", "");
    worker_start(busy);
    scenario_send(scenario, 0, 16);
    scenario_send(scenario, 1, 16);
    scenario_pass_ms(15000);
    NEED(scenario_answered(scenario, 0) + scenario_answered(scenario, 1) == 2);
    worker_start(quick);
    NEED(scenario_await_answers(scenario, 1, 16, 5000 + SOON_MS));
    NEED(scenario_stop(busy, 10000 + SOON_MS) == 0);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(quick, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_newcomer_waits_for_those_jobs_alone_that_have_begun_and_none_of_them_runs_again) {
    scenario_play_both(move_from_busy);
}

static bool move_keys(struct scenario *scenario) {
    scenario_begin(scenario, 2, true, true);
    struct worker *busy = scenario_add_worker(
        scenario, "busy", "seed=3;cuMemcpyDtoHAsync:invalid_value@p0.1;cuLaunchKernel:slow=1s@*");
    struct worker *quick = scenario_add_worker(scenario, "quick", "");
    busy->in_order = quick->in_order = true;
    worker_start(busy);
    scenario_send(scenario, 0, 32);
    scenario_send(scenario, 1, 32);
    scenario_pass_ms(1000 + scheduler_draw(5000));
    worker_start(quick);
    NEED(scenario_await_answers(scenario, 1, 32, 1000 + SOON_MS));
    NEED(scenario_stop(busy, 1000 + SOON_MS) == 0);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(quick, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(jobs_of_a_key_keep_their_order_though_partitions_move_and_some_are_tried_again) {
    scenario_play_both(move_keys);
}

/* The lanes are busy for a minute, and the partitions leave after five seconds. */
static bool move_from_one_that_hangs(struct scenario *scenario) {
    scenario_begin(scenario, 2, false, false);
    struct worker *busy = scenario_add_worker(scenario, "busy", "cuLaunchKernel:slow=60s@*");
    struct worker *quick = scenario_add_worker(scenario, "quick", "");
    busy->drain_timeout_ms = 5000;
    worker_start(busy);
    scenario_send(scenario, 0, 8);
    scenario_send(scenario, 1, 8);
    scenario_pass_ms(10000);
    worker_start(quick);
    NEED(!scenario_await_answers(scenario, 1, 1, 4000));
    NEED(scenario_await_answers(scenario, 1, 8, 1000 + SOON_MS));
    scenario_pass_ms(60000); /* what had begun ends */
    NEED(scenario_stop(busy, 5000 + SOON_MS) == WORKER_IS_LATE);
    NEED(scenario_await_all(scenario, SESSION_MS + SOON_MS)); /* it has left nobody a word */
    NEED(scenario_stop(quick, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(jobs_that_outlast_the_drain_timeout_hold_up_no_newcomer_and_no_stop) {
    scenario_play_both(move_from_one_that_hangs);
}

/* Each partition has a job that takes 15 s, and the group hears of a newcomer after 3 s. */
static bool move_long_jobs(struct scenario *scenario) {
    scenario_begin(scenario, 2, true, false);
    struct worker *first = scenario_add_worker(scenario, "first", "cuLaunchKernel:slow=15s@*");
    struct worker *second = scenario_add_worker(scenario, "second", "cuLaunchKernel:slow=15s@*");
    worker_start(first);
    scenario_send(scenario, 0, 1);
    scenario_send(scenario, 1, 1);
    scenario_pass_ms(3000);
    worker_start(second);
    NEED(scenario_await_all(scenario, 12000 + SOON_MS));
    scenario_send(scenario, 0, 1);
    scenario_send(scenario, 1, 1);
    NEED(scenario_await_all(scenario, 15000 + SOON_MS));
    NEED(group_generation() == 2);
    NEED(scenario_stop(first, SOON_MS) == 0 && scenario_stop(second, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(long_jobs_that_are_waited_for_are_answered_once_and_cost_no_further_rebalance) {
    scenario_play_both(move_long_jobs);
}

static bool join_and_leave(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    scenario_begin(scenario, 4, true, false);
    struct worker *a = scenario_add_worker(scenario, "a", slow),
                  *b = scenario_add_worker(scenario, "b", slow);
    struct worker *c = scenario_add_worker(scenario, "c", slow),
                  *d = scenario_add_worker(scenario, "d", slow);
    worker_start(a);
    for (int32_t partition = 0; partition < 4; partition++) scenario_send(scenario, partition, 20);
    scenario_pass_ms(scheduler_draw(3000));
    worker_start(b);
    worker_start(c);
    scenario_pass_ms(scheduler_draw(3000));
    worker_start(d);
    NEED(scenario_stop(a, 1000 + SOON_MS) == 0);
    scenario_pass_ms(scheduler_draw(3000));
    worker_start(a);
    NEED(scenario_stop(b, 1000 + SOON_MS) == 0);
    NEED(scenario_stop(c, 1000 + SOON_MS) == 0 && scenario_stop(d, 1000 + SOON_MS) == 0);
    worker_start(b);
    worker_start(c);
    NEED(account_count_unanswered(scenario->account) > 0);
    NEED(scenario_await_all(scenario, 40000));
    return scenario_is_right(scenario);
}

TEST(workers_that_join_and_leave_in_order_repeat_nothing) {
    scenario_play_both(join_and_leave);
}

/* ---- ends ---- */

static bool stop_in_the_middle(struct scenario *scenario) {
    scenario_begin(scenario, 2, true, false);
    struct worker *first = scenario_add_worker(scenario, "first", "cuLaunchKernel:slow=10s@*");
    struct worker *second = scenario_add_worker(scenario, "second", "");
    worker_start(first);
    scenario_send(scenario, 0, 16);
    scenario_send(scenario, 1, 16);
    scenario_pass_ms(15000);
    NEED(scenario_stop(first, 5000 + SOON_MS) == 0);
    NEED(scenario_answered(scenario, 0) + scenario_answered(scenario, 1) == 4);
    worker_start(second);
    NEED(scenario_await_all(scenario, SOON_MS));
    return scenario_is_right(scenario);
}

TEST(a_stop_ends_with_the_jobs_that_have_begun_and_none_of_them_runs_again) {
    scenario_play_both(stop_in_the_middle);
}

static bool stop_static(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *first = scenario_add_worker(scenario, "first", "");
    struct worker *second = scenario_add_worker(scenario, "second", "");
    first->is_static = second->is_static = true;
    worker_start(first);
    scenario_send(scenario, 0, 1);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(first, SOON_MS) == 0);
    scenario_send(scenario, 0, 1);
    worker_start(second);
    NEED(scenario_await_all(scenario, SOON_MS));
    return scenario_is_right(scenario);
}

TEST(a_static_member_that_stops_leaves_the_group_so_that_another_takes_over_at_once) {
    scenario_play_both(stop_static);
}

/* The worker comes back shortly before its session would end. */
static bool kill_static(struct scenario *scenario) {
    scenario_begin(scenario, 2, true, false);
    struct worker *killed = scenario_add_worker(scenario, "killed", "cuLaunchKernel:slow=3600s@2");
    struct worker *other = scenario_add_worker(scenario, "other", "");
    killed->is_static = other->is_static = true;
    worker_start(killed);
    scenario_pass_ms(SOON_MS);
    worker_start(other);
    scenario_pass_ms(SOON_MS);
    scenario_send(scenario, 0, 8);
    scenario_send(scenario, 1, 8);
    NEED(scenario_await_answers(scenario, 1, 8, SOON_MS) && scenario_answered(scenario, 0) < 8);
    scenario_pass_ms(SOON_MS); /* what is finished is committed */
    int32_t generation = group_generation();
    scheduler_kill(killed->process);
    scenario_pass_ms(SESSION_MS - SOON_MS);
    NEED(scenario_answered(scenario, 0) < 8);
    scenario_set_faults(killed, "");
    worker_start(killed);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(group_generation() == generation);
    NEED(scenario_stop(killed, SOON_MS) == 0 && scenario_stop(other, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_static_member_that_is_killed_and_comes_back_within_its_session_keeps_its_partitions) {
    scenario_play_both(kill_static);
}

/* Nobody succeeds the third: the brokers end its transaction, and its session. */
static bool kill_and_stop(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    scenario_begin(scenario, 3, false, false);
    struct worker *a = scenario_add_worker(scenario, "a", slow),
                  *b = scenario_add_worker(scenario, "b", slow);
    struct worker *c = scenario_add_worker(scenario, "c", slow);
    a->is_static = b->is_static = c->is_static = true;
    worker_start(a);
    worker_start(b);
    for (int32_t partition = 0; partition < 3; partition++) scenario_send(scenario, partition, 40);
    scenario_pass_ms(5000 + scheduler_draw(2000));
    scheduler_kill(a->process);
    worker_start(a);
    scenario_pass_ms(5000 + scheduler_draw(2000));
    worker_start(c);
    NEED(scenario_stop(b, 1000 + SOON_MS) == 0);
    scenario_pass_ms(5000 + scheduler_draw(2000));
    scheduler_kill(c->process);
    scheduler_kill(a->process);
    NEED(account_count_unanswered(scenario->account) > 0);
    scenario_set_faults(a, "");
    worker_start(a);
    NEED(scenario_await_all(scenario, SESSION_MS + TRANSACTION_MS + SOON_MS));
    return scenario_is_right(scenario);
}

TEST(kills_stops_and_newcomers_lose_nothing_and_repeat_nothing_in_transactions) {
    scenario_play_both(kill_and_stop);
}

/* For longer than the brokers keep transactions and sessions. */
static bool lose_brokers(struct scenario *scenario) {
    static const char *const slow = "cuLaunchKernel:slow=1s@*";
    scenario_begin(scenario, 2, false, false);
    struct worker *a = scenario_add_worker(scenario, "a", slow),
                  *b = scenario_add_worker(scenario, "b", slow);
    worker_start(a);
    worker_start(b);
    scenario_send(scenario, 0, 30);
    scenario_send(scenario, 1, 30);
    scenario_pass_ms(5000 + scheduler_draw(2000));
    uint64_t away_ms = 1000 + scheduler_draw(2 * SESSION_MS);
    cluster_go_down_until(scheduler_now_ns() + away_ms * 1000000u);
    NEED(scenario_await_all(scenario, away_ms + 60000));
    NEED(scenario_stop(a, SOON_MS) == 0 && scenario_stop(b, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(brokers_that_are_away_cost_time_and_no_job) {
    scenario_play_both(lose_brokers);
}

/* ---- members that do not know what they are ---- */

/* The worker freezes with jobs in its lanes, and wakes when its session is over and all of them are
 * answered. */
static bool wake_zombie(struct scenario *scenario) {
    scenario_begin(scenario, 2, false, false);
    struct worker *zombie = scenario_add_worker(scenario, "zombie", "cuLaunchKernel:slow=2s@*");
    struct worker *other = scenario_add_worker(scenario, "other", "");
    worker_start(zombie);
    scenario_pass_ms(SOON_MS);
    worker_start(other);
    scenario_pass_ms(SOON_MS);
    scenario_send(scenario, 0, 20);
    scenario_send(scenario, 1, 20);
    scenario_pass_ms(2000 + scheduler_draw(4000));
    scheduler_freeze(zombie->process, scheduler_now_ns() + 2 * SESSION_MS * 1000000ull);
    NEED(scenario_await_all(scenario, SESSION_MS + TRANSACTION_MS + SOON_MS));
    scenario_pass_ms(1000);
    NEED(scenario_committed(0) == 20);
    scenario_pass_ms(SESSION_MS);
    NEED(scenario_committed(0) == 20 && scenario_committed(1) == 20);
    scenario_send(scenario, 0, 20);
    scenario_send(scenario, 1, 20);
    NEED(scenario_await_all(scenario, 40000));
    NEED(scenario_stop(zombie, 2000 + SOON_MS) == 0 && scenario_stop(other, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(
    a_worker_that_wakes_after_its_session_takes_no_commit_back_and_repeats_nothing_in_transactions) {
    scenario_play_both(wake_zombie);
}

/* The partition is removed while its jobs are waited for. Another gets all or some of them, and
 * answers them before they end here. */
static bool remove_member(struct scenario *scenario) {
    scenario_begin(scenario, 2, false, false);
    struct worker *removed = scenario_add_worker(scenario, "removed", "cuLaunchKernel:slow=15s@*");
    struct worker *other = scenario_add_worker(scenario, "other", "");
    worker_start(removed);
    scenario_send(scenario, 0, 1);
    scenario_send(scenario, 1, 1);
    scenario_pass_ms(3000);
    worker_start(other);
    scenario_pass_ms(3000 + scheduler_draw(3000));
    group_remove(removed->process);
    NEED(scenario_await_answers(scenario, 0, 1, SOON_MS));
    scenario_pass_ms(15000);
    NEED(scenario_committed(0) >= 1);
    scenario_send(scenario, 0, 1);
    scenario_send(scenario, 1, 1);
    NEED(scenario_await_all(scenario, 30000 + SOON_MS)); /* it has joined again */
    NEED(scenario_stop(removed, SOON_MS) == 0 && scenario_stop(other, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_member_that_is_outside_its_group_while_it_gives_partitions_back_commits_nothing) {
    scenario_play_both(remove_member);
}

static bool share_name(struct scenario *scenario) {
    scenario_begin(scenario, 2, false, false);
    struct worker *earlier = scenario_add_worker(scenario, "same", "cuLaunchKernel:slow=1s@*");
    struct worker *later = scenario_add_worker(scenario, "same", "");
    earlier->is_static = later->is_static = true;
    worker_start(earlier);
    scenario_send(scenario, 0, 20);
    scenario_send(scenario, 1, 20);
    scenario_pass_ms(2000 + scheduler_draw(2000));
    worker_start(later);
    NEED(scenario_await_end(earlier, 1000 + SOON_MS) == WORKER_IS_REFUSED);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(later, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(of_two_workers_of_one_name_the_earlier_ends_and_the_later_goes_on) {
    scenario_play_both(share_name);
}

/* ---- offsets that are not what they seem ---- */

/* An unclean election loses the last message, which was answered. */
static bool lose_end(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker_start(worker);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0 && scenario_committed(0) == 10);
    account_excuse(scenario->account, 0, 9, 10);
    cluster_truncate(cluster_find_log(WORLD_JOBS, 0), 9);
    worker_start(worker);
    scenario_pass_ms(SOON_MS);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(account_answers(scenario->account, 0, 9).jobs == 11);
    return scenario_is_right(scenario);
}

TEST(where_the_commit_stands_behind_the_end_of_the_log_reading_goes_on_there_and_repeats_nothing) {
    scenario_play_both(lose_end);
}

/* Here jobs add to what the device keeps: the next message has the offset of one that
 * was applied, and is another. */
static bool lose_end_of_residents(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, true);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker->in_order = true;
    worker_start(worker);
    for (int i = 0; i < 10; i++) account_send_one(scenario->account, 0, JOB_OF_RESIDENT, "one");
    NEED(scenario_await_all(scenario, SOON_MS));
    scenario_pass_ms(SOON_MS);
    int64_t end = 9 - (int64_t)scheduler_draw(3);
    account_excuse(scenario->account, 0, end, 10);
    cluster_truncate(cluster_find_log(WORLD_JOBS, 0), end);
    scenario_pass_ms(SOON_MS);
    for (int i = 0; i < 10; i++) account_send_one(scenario->account, 0, JOB_OF_RESIDENT, "one");
    NEED(scenario_await_all(scenario, SOON_MS));
    return scenario_is_right(scenario);
}

TEST(residents_are_dropped_where_the_log_lost_its_end_and_no_job_is_taken_for_an_earlier_one) {
    scenario_play_both(lose_end_of_residents);
}

/* The fifth job never ends, and those behind it do. Who mirrors the group's offsets commits an
 * earlier one with the text that calls them finished. */
static bool move_commit(struct scenario *scenario) {
    scenario_begin(scenario, 1, false, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "cuLaunchKernel:slow=3600s@5");
    worker_start(worker);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_answers(scenario, 0, 9, SOON_MS));
    scenario_pass_ms(SOON_MS);
    NEED(scenario_committed(0) > 1 && scenario_committed(0) < 9); /* where the slow one stands */
    scheduler_kill(worker->process);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, WORLD_JOBS, 0);
    group_fetch(list, false);
    list->elems[0].offset = 1;
    (void)group_commit(list, NULL);
    rd_kafka_topic_partition_list_destroy(list);
    scenario_set_faults(worker, "");
    worker_start(worker);
    NEED(scenario_await_all(scenario, SESSION_MS + SOON_MS));
    return scenario_is_right(scenario);
}

TEST(a_commit_that_was_moved_with_its_text_loses_no_job) {
    scenario_play(move_commit, false);
}

/* The group is new to the partitions: auto.offset.reset does not count for them. */
static bool add_partitions(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker->reads_latest = true;
    worker_start(worker);
    scenario_pass_ms(SOON_MS);
    NEED(scenario_committed(0) == 0);
    cluster_add_partitions(WORLD_JOBS, 4);
    for (int32_t partition = 0; partition < 4; partition++) scenario_send(scenario, partition, 5);
    NEED(scenario_await_all(scenario, 10000 + SOON_MS));
    return scenario_is_right(scenario);
}

TEST(partitions_that_a_topic_gets_are_read_from_their_start_also_by_who_reads_the_latest) {
    scenario_play_both(add_partitions);
}

/* The group's leader was away as a static member while the topic got partitions. It comes back to
 * what it had, and not as the leader, in its own eyes; so nobody hands them out (KIP-814). */
static bool add_partitions_to_static(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker->is_static = true;
    worker_start(worker);
    scenario_send(scenario, 0, 5);
    NEED(scenario_await_all(scenario, SOON_MS));
    scenario_pass_ms(SOON_MS); /* what is finished is committed */
    scheduler_kill(worker->process);
    cluster_add_partitions(WORLD_JOBS, 2);
    scenario_send(scenario, 1, 5);
    scenario_pass_ms(AWAY_MS);
    worker_start(worker);
    NEED(scenario_await_all(scenario, DRAIN_MS + 4 * SOON_MS));
    return scenario_is_right(scenario);
}

TEST(partitions_that_a_topic_gets_while_a_static_leader_is_away_find_an_owner) {
    scenario_play_both(add_partitions_to_static);
}

/* The brokers go away while the worker claims its partition, and come back with another topic,
 * whose jobs arrive before anything tells of it. */
static bool create_anew(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker_start(worker);
    while (group_generation() == 0) scenario_pass_ms(1);
    scenario_pass_ms(scheduler_draw(CLAIM_MS));
    cluster_go_down_until(scheduler_now_ns() + AWAY_MS * 1000000ull);
    scenario_pass_ms(AWAY_MS / 2);
    cluster_delete_topic(WORLD_JOBS);
    cluster_make_topic(WORLD_JOBS, 1);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_all(scenario, AWAY_MS + SOON_MS));
    scenario_pass_ms(SOON_MS);
    return scenario_is_right(scenario);
}

TEST(jobs_of_a_topic_that_was_created_anew_are_answered_once_in_transactions) {
    scenario_play(create_anew, true);
}

/* While a worker commits its claim, the topic is deleted: librdkafka sends the offset again and
 * again, until there is another topic to take it. */
static bool create_anew_in_claim(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker_start(worker);
    scenario_send(scenario, 0, 5);
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0);
    NEED(scenario_committed(0) == 5);
    int32_t generation = group_generation();
    worker_start(worker);
    while (group_generation() == generation) scenario_pass_ms(1);
    scenario_pass_ms(scheduler_draw(CLAIM_MS));
    cluster_delete_topic(WORLD_JOBS);
    scenario_pass_ms(AWAY_MS);
    account_excuse(scenario->account, 0, 0, INT64_MAX);
    account_doubt(scenario->account, 0, 0);
    cluster_make_topic(WORLD_JOBS, 1);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_all(scenario, 10000 + SOON_MS));
    return scenario_is_right(scenario);
}

TEST(a_claim_that_outlasts_its_topic_is_no_claim_of_the_next_one) {
    scenario_play(create_anew_in_claim, true);
}

/* A cooperative group leaves a partition that is gone with who had it. */
static bool create_with_fewer(struct scenario *scenario) {
    scenario_begin(scenario, 3, false, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker->is_cooperative = true;
    worker_start(worker);
    for (int32_t partition = 0; partition < 3; partition++) scenario_send(scenario, partition, 5);
    NEED(scenario_await_all(scenario, SOON_MS));
    scenario_pass_ms(SOON_MS);
    cluster_delete_topic(WORLD_JOBS);
    cluster_make_topic(WORLD_JOBS, 1);
    scenario_send(scenario, 0, 10);
    NEED(scenario_await_all(scenario, 2 * SOON_MS));
    cluster_add_partitions(WORLD_JOBS, 2);
    scenario_send(scenario, 1, 10);
    NEED(scenario_await_all(
        scenario, 10000 + SOON_MS)); /* once the group has seen that it is there */
    NEED(scenario_stop(worker, SOON_MS) == 0);
    NEED(scenario_committed(0) == 10 && scenario_committed(1) == 10);
    return scenario_is_right(scenario);
}

TEST(a_topic_that_is_created_anew_with_fewer_partitions_holds_up_no_job_of_a_cooperative_group) {
    scenario_play_both(create_with_fewer);
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

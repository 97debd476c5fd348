/*
 * Proves what a worker promises where brokers refuse what it asks, or leave it without an answer,
 * and how long it may take where nothing is wrong (scenario.h).
 */
#include <limits.h>

#include "broker/commit_metadata.h"
#include "support/at_once.h"
#include "testing.h"
#include "world/cluster.h"
#include "world/scenario.h"
#include "world/scheduler.h"

/* ---- answers that brokers do not take ---- */

static bool forbid(struct scenario *scenario, enum request request) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker_start(worker);
    scenario_send(scenario, 0, 5);
    NEED(scenario_await_all(scenario, SOON_MS));
    cluster_refuse(request, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, INT_MAX);
    scenario_send(scenario, 0, 5);
    NEED(scenario_await_end(worker, 10000 + SOON_MS) == WORKER_IS_REFUSED);
    cluster_refuse(request, RD_KAFKA_RESP_ERR_NO_ERROR, 0);
    worker_start(worker);
    NEED(scenario_await_all(scenario, SESSION_MS + SOON_MS));
    return scenario_is_right(scenario);
}

static bool forbid_results(struct scenario *scenario) {
    return forbid(scenario, REQUEST_PRODUCE);
}

static bool forbid_transactions(struct scenario *scenario) {
    return forbid(scenario, REQUEST_ADD_PARTITIONS_TO_TXN);
}

TEST(a_worker_that_may_not_write_its_results_ends_and_answers_the_jobs_once_it_may) {
    scenario_play_both(forbid_results);
    scenario_play(forbid_transactions, true);
}

/* Brokers do not say which record of a batch it was. */
static bool send_too_much(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    cluster_find_topic(WORLD_RESULTS)->message_bytes_max = 2000;
    worker_start(worker);
    for (int i = 0; i < 3; i++) {
        scenario_send(scenario, 0, 10);
        account_send_one(scenario->account, 0, JOB_OF_LARGE_RESULT, "large");
        scenario_send(scenario, 0, 10);
    }
    NEED(scenario_await_all(scenario, 10000 + SOON_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0);
    return scenario_is_right(scenario) && account_letters_are_right(scenario->account);
}

TEST(a_result_that_is_too_large_fails_its_own_job_and_no_other) {
    scenario_play_both(send_too_much);
}

/* Who is refused at once is told so; who was let in before waits. */
static bool shut_out(struct scenario *scenario) {
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    cluster_shut_out();
    worker_start(worker);
    NEED(scenario_await_end(worker, SOON_MS) == WORKER_IS_REFUSED);
    cluster_come_up();
    worker_start(worker);
    scenario_send(scenario, 0, 5);
    NEED(scenario_await_all(scenario, SOON_MS));
    cluster_shut_out();
    scenario_send(scenario, 0, 5);
    scenario_pass_ms(SOON_MS);
    cluster_come_up();
    NEED(scenario_await_all(scenario, SOON_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_worker_that_brokers_do_not_let_in_ends_at_once_but_not_one_that_runs) {
    scenario_play_both(shut_out);
}

/* Whether a commit was taken whose answer is lost is known to the group alone. */
static bool lose_answers(struct scenario *scenario) {
    enum { REPLACE_MS = 5000 }; /* before another producer takes the place of one */
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    producer_ids_lose_answers();
    worker_start(worker);
    for (int i = 0; i < 30; i++) {
        scenario_send(scenario, 0, 1 + scheduler_draw(5));
        NEED(scenario_await_all(scenario, REPLACE_MS + SOON_MS));
    }
    NEED(scenario_stop(worker, REPLACE_MS + SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_transaction_with_an_unknown_end_is_repeated_only_where_its_commit_was_not_taken) {
    scenario_play(lose_answers, true);
}

/* ---- what waits for what ---- */

/* A worker that has taken as many jobs as it may waits for no clock before it answers them and
 * takes others. */
static bool hurry(struct scenario *scenario) {
    enum { JOBS = 400, FULL = 8, JOB_MS = 4 };
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "");
    worker->jobs_max = FULL;
    worker_start(worker);
    scenario_send(scenario, 0, 1);
    NEED(scenario_await_all(scenario, SOON_MS));
    scenario_send(scenario, 0, JOBS);
    NEED(scenario_await_all(scenario, JOBS * JOB_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0);
    return scenario_is_right(scenario);
}

TEST(a_worker_that_is_full_answers_without_a_pause) {
    scenario_play_both(hurry);
}

/* The first job takes long, and so many offsets behind it are of no message that no commit could
 * tell which of the later ones are finished: those wait for it. */
static bool run_beyond_window(struct scenario *scenario) {
    enum { LONG_MS = 20000 };
    const struct log_record marker = {.is_marker = true};
    scenario_begin(scenario, 1, true, false);
    struct worker *worker = scenario_add_worker(scenario, "worker", "cuLaunchKernel:slow=20s@1");
    worker_start(worker);
    scenario_send(scenario, 0, 5);
    for (int i = 0; i < COMMIT_METADATA_WINDOW; i++)
        (void)cluster_append(cluster_find_log(WORLD_JOBS, 0), &marker);
    scenario_send(scenario, 0, 10);
    NEED(!scenario_await_answers(scenario, 0, 5, LONG_MS - SOON_MS));
    NEED(scenario_answered(scenario, 0) == 4);
    NEED(scenario_await_all(scenario, 2 * SOON_MS));
    NEED(scenario_stop(worker, SOON_MS) == 0 &&
         scenario_committed(0) == COMMIT_METADATA_WINDOW + 15);
    return scenario_is_right(scenario);
}

TEST(messages_too_far_behind_a_long_job_wait_for_it_and_are_lost_by_nobody) {
    scenario_play_both(run_beyond_window);
}

RUN_TESTS_AT_ONCE(T(a_worker_that_may_not_write_its_results_ends_and_answers_the_jobs_once_it_may),
    T(a_worker_that_brokers_do_not_let_in_ends_at_once_but_not_one_that_runs),
    T(a_result_that_is_too_large_fails_its_own_job_and_no_other),
    T(a_transaction_with_an_unknown_end_is_repeated_only_where_its_commit_was_not_taken),
    T(a_worker_that_is_full_answers_without_a_pause),
    T(messages_too_far_behind_a_long_job_wait_for_it_and_are_lost_by_nobody))

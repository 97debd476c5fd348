/**
 * What a world's senders have sent and its readers have read: whether each job was answered as
 * promised. Threads: the first of the world.
 */
#ifndef TESTS_WORLD_ACCOUNT_H
#define TESTS_WORLD_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/job.h"

struct account;

/** What is promised, beside an answer for each job. */
struct account_promises {
    bool exactly_once;
    bool in_order;    /* jobs of one key are answered in the order in which they were sent */
    bool once;        /* nothing happens after which a job may be answered again */
    uint32_t wait_ms; /* each is answered within so long of being sent; 0: when it will */
};
struct account *account_create(const struct account_promises *promises);

/** From now on jobs may be answered again, unless exactly once is promised. */
void account_allow_repeats(struct account *account);

/** Sends one more job, of any kind and any key, to a partition of the job topic. */
void account_send(struct account *account, int32_t partition);

/** Sends one more job of this kind and this key. */
void account_send_one(
    struct account *account, int32_t partition, enum job_kind kind, const char *key);

/** Sends one that ends its executor, with a key of its own. */
void account_send_poison(struct account *account, int32_t partition);
bool account_has_poison(const struct account *account);

/** Cancels one of the latest jobs, or of those that come next. With `is_prompt`, workers hear of it
 * soon: what is sent later must not run. */
void account_cancel(struct account *account, bool is_prompt);

/** Cancels the job that comes next; returns when workers must have heard of that. */
void account_cancel_next(struct account *account, bool is_prompt);

/** What was cancelled so far may run: who starts from now on cannot know. */
void account_forget_cancels(struct account *account);

/** The log lost these jobs: they may be answered or not. */
void account_excuse(struct account *account, int32_t partition, int64_t begin, int64_t end);

/** So may those that will be sent below this offset: who read so far cannot know them. */
void account_doubt(struct account *account, int32_t partition, int64_t end);

/** How many jobs have no answer yet that readers can see, and are not excused. */
size_t account_count_unanswered(struct account *account);

/** How many of the jobs to that partition, from the offset `first` on, have been answered, and how
 * often all of them together. */
struct account_answers {
    size_t jobs, answers;
};
struct account_answers account_answers(struct account *account, int32_t partition, int64_t first);

/** Whether each job was answered, once if promised, with the right numbers. Tells what is wrong. */
bool account_is_right(struct account *account);

/** Whether there is a dead letter of each job that has failed, with all that its sender sent; once
 * all workers have stopped. Tells what is wrong. */
bool account_letters_are_right(struct account *account);

/** Whether all that is committed was answered. Tells what is wrong. */
bool account_commits_are_right(struct account *account);

/** Whether somebody who tells of so many answers tells of all, if each job is answered once; when
 * all workers have stopped. Tells what is wrong. */
bool account_is_all_told(const struct account *account, size_t told, const char *by);

/** Whether so many successes and errors are all that there are, for the same. */
bool account_is_summed_up(const struct account *account, size_t ok, size_t errors);

/** Of how many answers the reports of telemetry tell. */
size_t account_count_reported(void);

/** A partition whose end is not committed; -1: there is none. */
int32_t account_find_lag(void);

#endif

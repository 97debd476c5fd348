/**
 * What a world's senders have sent and its readers have read: whether each job was answered as
 * promised. Threads: the first of the world.
 */
#ifndef TESTS_WORLD_ACCOUNT_H
#define TESTS_WORLD_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct account;

/** `in_order`: jobs of one key are answered in the order in which they were sent. */
struct account *account_create(bool exactly_once, bool in_order);

/** Sends one more job, of any kind and any key, to a partition of the job topic. */
void account_send(struct account *account, int32_t partition);

/**
 * The partition lost its end: jobs from there on may be answered or not. With `before`, so may
 * those that come in their places, up to that offset: who read so far cannot know them.
 */
void account_excuse(struct account *account, int32_t partition, int64_t end, int64_t before);

/** How many jobs have no answer yet that readers can see, and are not excused. */
size_t account_count_unanswered(struct account *account);

/** Whether each job was answered, once if promised, with the right numbers. Tells what is wrong. */
bool account_is_right(struct account *account);

/** Whether all that is committed was answered. Tells what is wrong. */
bool account_commits_are_right(struct account *account);

#endif

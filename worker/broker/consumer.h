/**
 * A source that is a member of a Kafka consumer group, over librdkafka; or the only reader of a
 * group that has no members, where the partitions are known.
 *
 * What is committed is the lowest unfinished offset of each partition and what is finished above it
 * (offsets.h), every `commit_interval_ms`. A partition is read from there on, and what was finished
 * is not taken again. Messages that stand OFFSETS_WINDOW or more above it wait here, with their
 * partition paused, until half of the window is free. At the end of a partition the end is
 * committed, so that transaction markers leave no lag.
 *
 * Before anything of a partition is taken, the group is told that it is ours (commit_metadata.h),
 * and when it is given back, that it was. So the next owner knows whether the last one died. What
 * two owners may have died of is delivered as suspect. In transactions a partition is handed over
 * so only where nothing that has started is unfinished; else the next owner takes it for left by a
 * death.
 *
 * Revoked partitions bring no more messages, and start none; poll() goes on while those that have
 * started finish, `drain_timeout_ms` at most, then commits and lets go of them. The next owner gets
 * the others. Lost partitions are dropped at once, also where librdkafka does not say that they are
 * (member.h).
 *
 * A static member that comes back within the session timeout (20 s unless the settings say
 * otherwise) finds its partitions as they were. Closing makes a static member leave, too. Of two
 * members of one name the earlier is lost, with ERR_CONFIG.
 *
 * From librdkafka 2.10 on the assignment is cooperative, before it is eager, because of bugs; in
 * one group the members must agree, so upgrade across 2.10 with `partition.assignment.strategy` set
 * in kafka.consumer.
 */
#ifndef BROKER_CONSUMER_H
#define BROKER_CONSUMER_H

#include "broker/consumer_options.h"
#include "broker/source.h"

/**
 * Joins the group; that the brokers are there is not waited for. ERR_CONFIG names the setting that
 * librdkafka refuses.
 */
MUST_CHECK enum err consumer_create(
    const struct consumer_options *options, struct source **ret, struct error *err);

#endif

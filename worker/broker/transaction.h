/**
 * A sink that publishes to Kafka exactly once: records and the offsets of the messages that they
 * answer are committed in one transaction, or neither is. A reader of committed records sees the
 * answer to each message once, whatever happens in between.
 *
 * A transaction begins with the first record, or when only offsets are due. It ends
 * `commit_interval_ms` later, or with `messages_max` answered messages, or when no record is sent
 * for a tenth of the interval. Only then are its records settled, and their messages finish.
 * Records that are sent while a transaction ends wait for the next one.
 *
 * A transaction that is aborted (a rebalance, a record that the brokers refused) is repeated with
 * the same records, except those of messages that do not belong to this worker any more: these are
 * settled with ERR_REVOKED. A record that our own client refuses (too large, a topic known to be
 * missing) costs no transaction. If the topic of a record is forbidden, all records of the
 * transaction that name topics of their own and are not delivered are refused, because the brokers
 * do not say which one it was. A producer that was fenced (the brokers ended a transaction that was
 * open for too long, or another one has its id) is replaced, once until something is committed
 * again: the group says whether the transaction was committed, and if not it is repeated. A
 * producer that is lost for other reasons settles all with ERR_BROKER, and a membership that is
 * lost with what ended it. A producer that was kept waiting, or whose connections broke, while a
 * transaction ended is replaced before the next one: a request that it gave up may arrive later,
 * and brokers refuse it only from a producer that has a successor (what KIP-890 does with an epoch
 * for each transaction).
 *
 * Offsets are committed as a member of the group (KIP-447), as which the partitions were assigned
 * (member.h): nothing is committed once the group has gone on without this member. If the group
 * refuses a transaction again and again, repetitions wait longer and longer, up to 1.6 s.
 */
#ifndef BROKER_TRANSACTION_H
#define BROKER_TRANSACTION_H

#include "broker/producer.h"
#include "broker/source.h"

struct transaction_options {
    struct producer_options producer; /* its transactional_id survives restarts */
    struct source *source; /* a consumer whose offsets the sink commits; outlives the sink */
    uint32_t commit_interval_ms;
    uint32_t messages_max;
};

/** As producer_create(). */
MUST_CHECK enum err transaction_create(
    const struct transaction_options *options, struct sink **ret, struct error *err);

#endif

/**
 * How far a group has come, for commands: where a message stands in what the group has committed.
 * Joins no group and commits nothing. Threads: any.
 */
#ifndef BROKER_COMMITTED_H
#define BROKER_COMMITTED_H

#include "broker/delivery.h"
#include "broker/kafka_options.h"

struct committed {
    bool is_any;      /* the group has committed something of the partition */
    bool is_finished; /* the message is finished: its answer was acknowledged */
    uint64_t earlier; /* messages of the partition before it that are not finished, at most */
};

/**
 * Asks what `group` has committed. Waits up to `timeout_ms`. Errors: ERR_CONFIG, ERR_NO_MEMORY;
 * ERR_BROKER, if no broker answers, or not for as long as a transaction of the group is open.
 */
MUST_CHECK enum err committed_read(const struct kafka_options *options, const char *group,
    const struct position *position, int timeout_ms, struct committed *ret, struct error *err);

#endif

/**
 * Where clients connect to the embedded broker. It hands their requests to librdkafka's mock
 * cluster and the responses back, one at a time for each connection, as Kafka does.
 *
 * The cluster would drop jobs that nobody has read (backlog.h). So a request that appends to a job
 * topic waits here while there is no room, and the client with it: nothing more of its connection
 * is read. It gives the request up at its own time-out and closes the connection; then the request
 * goes nowhere. A batch of more than BACKLOG_BATCH_MAX is refused. The responses that name the
 * cluster's address name the gate's instead.
 *
 * Lifetime: from gate_open() to gate_close(), within that of the cluster. Threads: one for each
 * connection, GATE_CONNECTIONS_MAX at most. Memory: a request that appends is held as a whole.
 */
#ifndef BROKER_GATE_H
#define BROKER_GATE_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdint.h>

#include "base/error.h"

enum { GATE_CONNECTIONS_MAX = 256 };

struct gate;

struct gate_options {
    rd_kafka_mock_cluster_t *cluster;
    const char *group; /* what it has committed is done */
    size_t topic_count;
    char *const *topics; /* of jobs */
    uint32_t partitions; /* of each */
};

/** Errors: ERR_BROKER, ERR_NO_MEMORY. */
MUST_CHECK enum err gate_open(
    const struct gate_options *options, struct gate **ret, struct error *err);
void gate_close(struct gate *gate); /* NULL is fine */

/** host:port, until gate_close(). */
const char *gate_address(const struct gate *gate);

#endif

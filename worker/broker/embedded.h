/**
 * A Kafka broker inside this process, librdkafka's test broker: for a first try without Kafka and
 * for tests. Clients in other processes reach it on the loopback interface.
 *
 * It does not store anything: messages are in memory, end with the process, and a partition keeps
 * its newest 5 MiB. It has no transactions. A group that already has members waits for a new one
 * almost as long as its session timeout.
 */
#ifndef BROKER_EMBEDDED_H
#define BROKER_EMBEDDED_H

#include <stdint.h>

#include "base/error.h"

struct embedded;

struct embedded_options {
    size_t topic_count;
    char *const *topics;
    uint32_t partitions;      /* of each topic */
    const char *address_file; /* the address is written to it, in one step; NULL or "": none */
};

/**
 * Errors: ERR_BROKER, if the broker or a topic cannot be created; ERR_IO, if the file cannot be
 * written.
 */
MUST_CHECK enum err embedded_create(
    const struct embedded_options *options, struct embedded **ret, struct error *err);

/** Removes the address file. Clients must be gone; NULL is fine. */
void embedded_destroy(struct embedded *embedded);

/** host:port, for bootstrap.servers; valid until embedded_destroy(). */
const char *embedded_bootstrap_servers(const struct embedded *embedded);

#endif

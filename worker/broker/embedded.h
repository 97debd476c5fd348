/**
 * A Kafka broker inside this process, librdkafka's test broker: for a first try without Kafka and
 * for tests. Clients reach it on the loopback interface.
 *
 * It does not store anything: messages are in memory, and end with the process. A partition keeps
 * its newest 5 MiB, but jobs are kept until they are done: who sends more waits (gate.h). It has no
 * transactions. A group takes three seconds to form, and one that has members waits for a new one
 * almost as long as its session timeout: so the worker itself is in none.
 */
#ifndef BROKER_EMBEDDED_H
#define BROKER_EMBEDDED_H

#include <stdint.h>

#include "base/error.h"

#define EMBEDDED_FIX_FILE "give embedded.address_file a file of its own, or remove this one"

struct embedded;

struct embedded_options {
    size_t topic_count, job_topic_count; /* those of jobs come first */
    char *const *topics;
    const char *group;        /* what it has committed of the jobs is done */
    uint32_t partitions;      /* of each topic */
    const char *address_file; /* the address is written to it, in one step; NULL or "": none */
};

/** Whether nothing stands at `path`, or no more than the address of an earlier broker. */
bool embedded_may_write(const char *path);

/** Reads the address that a broker wrote to `path`; false where none stands there. */
bool embedded_read_address(const char *path, char *address, size_t size);

/**
 * Errors: ERR_BROKER, if the broker or a topic cannot be created; ERR_IO, if the file cannot be
 * written, or is none of its own.
 */
MUST_CHECK enum err embedded_create(
    const struct embedded_options *options, struct embedded **ret, struct error *err);

/** Removes the address file, if its address stands there. Clients must be gone; NULL is fine. */
void embedded_destroy(struct embedded *embedded);

/** host:port, for bootstrap.servers; valid until embedded_destroy(). */
const char *embedded_bootstrap_servers(const struct embedded *embedded);

#endif

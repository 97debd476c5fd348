/**
 * The baseline for Kafka: the loop that a programmer would write with librdkafka and nothing else.
 * It reads messages, writes one for each, and commits offsets: now and then, or exactly once in
 * transactions. gpu-worker bench kafka compares the worker with it. This file also prepares the
 * brokers: it creates topics for the bench and fills them.
 *
 * Both clients have the worker's settings (broker/consumer_conf.c, broker/producer.c), but for how
 * long results go to one partition: the client's own default suits this loop better.
 * Threads: one.
 */
#ifndef BENCH_KAFKA_BASELINE_H
#define BENCH_KAFKA_BASELINE_H

#include "base/slice.h"
#include "broker/kafka_options.h"

/** Creates topics with `partitions` partitions and one replica. Errors: ERR_BROKER. */
MUST_CHECK enum err kafka_baseline_make_topics(const struct kafka_options *kafka,
    const char *const *names, size_t count, int partitions, struct error *err);

/** Topics that cannot be removed are left. */
void kafka_baseline_remove_topics(
    const struct kafka_options *kafka, const char *const *names, size_t count);

/** Writes `payload` to `topic` `count` times. ERR_BROKER. */
MUST_CHECK enum err kafka_baseline_fill(const struct kafka_options *kafka, const char *topic,
    struct slice payload, uint64_t count, struct error *err);

struct kafka_baseline_work {
    struct kafka_options consumer, producer;
    const char *group;
    const char *from, *to;
    uint64_t messages;             /* messages in `from`, warm-up included */
    uint64_t warm_up;              /* 1 at least */
    struct slice response;         /* to each message */
    const char *transactional_id;  /* NULL: at least once */
    uint64_t transaction_messages; /* in each transaction */
};

/**
 * `*ns_each` is the time for each message after the warm-up, until the last response was
 * acknowledged, and `*cpu_ns_each` the process's CPU time meanwhile. Errors: ERR_BROKER.
 */
MUST_CHECK enum err kafka_baseline_run(const struct kafka_baseline_work *work, double *ns_each,
    double *cpu_ns_each, struct error *err);

#endif

/**
 * The loop that a programmer would write over librdkafka who has nothing else to care for: messages
 * in, as many messages out, offsets committed now and then. What the worker reaches between two
 * topics is measured against it (gpu-worker bench kafka). With it, what such a bench needs of the
 * brokers: topics of its own, full of messages.
 *
 * Both clients have the settings of the worker's own (broker/consumer.h, broker/producer.h).
 * Threads: one.
 */
#ifndef BENCH_KAFKA_BASELINE_H
#define BENCH_KAFKA_BASELINE_H

#include "base/slice.h"
#include "broker/kafka_options.h"

/** Makes topics of `partitions` partitions, one replica each. ERR_BROKER. */
MUST_CHECK enum err kafka_baseline_make_topics(const struct kafka_options *kafka,
    const char *const *names, size_t count, int partitions, struct error *err);

/** What cannot be removed is left. */
void kafka_baseline_remove_topics(
    const struct kafka_options *kafka, const char *const *names, size_t count);

/** Writes `payload` to `topic` `count` times. ERR_BROKER. */
MUST_CHECK enum err kafka_baseline_fill(const struct kafka_options *kafka, const char *topic,
    struct slice payload, uint64_t count, struct error *err);

struct kafka_baseline_work {
    struct kafka_options consumer, producer;
    const char *group;
    const char *from, *to;
    uint64_t messages;     /* that stand in `from` */
    struct slice response; /* to each */
};

/** From the first message that came in until the last response was acknowledged. ERR_BROKER. */
MUST_CHECK enum err kafka_baseline_run(
    const struct kafka_baseline_work *work, uint64_t *elapsed_ns, struct error *err);

#endif

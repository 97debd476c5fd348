/** What the worker knows of librdkafka's keys: those that it refuses, and those that are secret. */
#ifndef SETTINGS_KAFKA_KEYS_H
#define SETTINGS_KAFKA_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct kafka_refusal {
    const char *key;
    const char *reason;
};

extern const struct kafka_refusal kafka_refusals[];
extern const size_t kafka_refusal_count;

/** NULL where the key may be set, for consumers and producers alike. */
const struct kafka_refusal *kafka_key_refusal(const char *key);

/** True where a value must not be printed. */
bool kafka_key_is_secret(const char *key);

#endif

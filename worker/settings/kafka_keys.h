/** librdkafka's keys that the worker refuses, and those that are secret. Threads: any. */
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

/** Why the key is refused; NULL: it may be set. The same for consumers and producers. */
const struct kafka_refusal *kafka_key_refusal(const char *key);

/** True if its value must not be printed. */
bool kafka_key_is_secret(const char *key);

#endif

/**
 * Checks the user's keys for librdkafka without a broker: whether it knows them and accepts their
 * values, and whether the files that they name can be read. Threads: any.
 */
#ifndef BROKER_KEYS_H
#define BROKER_KEYS_H

#include "base/error.h"

/** `section` is the key's section, such as "kafka.consumer". Errors: ERR_CONFIG. */
MUST_CHECK enum err kafka_key_check(
    const char *section, const char *key, const char *value, struct error *err);

#endif

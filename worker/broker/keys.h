/**
 * The user's keys for librdkafka, looked at without a broker: whether it knows them and takes their
 * values, and whether the files that they name can be read. Threads: any.
 */
#ifndef BROKER_KEYS_H
#define BROKER_KEYS_H

#include "base/error.h"

/** `section` is where the key stands, "kafka.consumer". ERR_CONFIG. */
MUST_CHECK enum err kafka_key_check(
    const char *section, const char *key, const char *value, struct error *err);

#endif

/** How librdkafka is set up to be a member of a group. Only for consumer.c. */
#ifndef BROKER_CONSUMER_CONF_H
#define BROKER_CONSUMER_CONF_H

#include <librdkafka/rdkafka.h>

#include "broker/consumer_options.h"

/** Where the user's settings stand. */
#define CONSUMER_SECTION "kafka.consumer"

/** All but the callbacks. ERR_CONFIG names the setting that cannot be. */
MUST_CHECK enum err consumer_conf_create(
    const struct consumer_options *options, rd_kafka_conf_t **ret, struct error *err);

#endif

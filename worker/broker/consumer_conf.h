/** librdkafka's configuration for a member of a group. Only for consumer.c. */
#ifndef BROKER_CONSUMER_CONF_H
#define BROKER_CONSUMER_CONF_H

#include <librdkafka/rdkafka.h>

#include "broker/consumer_options.h"

/** The section of the user's settings. */
#define CONSUMER_SECTION "kafka.consumer"

/** Everything but the callbacks. Errors: ERR_CONFIG names the setting that is refused. */
MUST_CHECK enum err consumer_conf_create(
    const struct consumer_options *options, rd_kafka_conf_t **ret, struct error *err);

#endif

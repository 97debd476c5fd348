/** From librdkafka's message to ours. Only for consumer.c. Threads: pure. */
#ifndef BROKER_MESSAGE_H
#define BROKER_MESSAGE_H

#include <librdkafka/rdkafka.h>

#include "broker/delivery.h"

/** A copy of everything but the position; NULL when memory is short. */
struct delivery *message_copy(const rd_kafka_message_t *message);

#endif

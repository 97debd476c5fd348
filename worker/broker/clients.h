/** What a transaction joins: the clients inside a source and a sink. Only for transaction.c. */
#ifndef BROKER_CLIENTS_H
#define BROKER_CLIENTS_H

#include <librdkafka/rdkafka.h>

#include "broker/claim.h"
#include "broker/offsets.h"
#include "broker/sink.h"
#include "broker/source.h"

/** Of a source of consumer.h, and as long as it lives; both are used by any thread. */
rd_kafka_t *consumer_client(const struct source *source);
struct offsets *consumer_offsets(const struct source *source);
/** NULL where the source commits by itself. */
struct claim *consumer_claim(const struct source *source);

/** Of a sink of producer.h. */
rd_kafka_t *producer_client(const struct sink *sink);
/** How often its client has told of trouble with brokers, among it each connection that broke. */
uint64_t producer_trouble_count(const struct sink *sink);

/** True for refusals for good that a topic makes, whatever the record: it is missing or forbidden.
 */
bool producer_is_about_topic(rd_kafka_resp_err_t code);

/** True for every refusal for good: sending the record again cannot help. */
bool producer_is_final(rd_kafka_resp_err_t code);

#endif

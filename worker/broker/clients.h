/** Gives transaction.c the clients inside a source and a sink. Only for transaction.c. */
#ifndef BROKER_CLIENTS_H
#define BROKER_CLIENTS_H

#include <librdkafka/rdkafka.h>

#include "broker/claim.h"
#include "broker/member.h"
#include "broker/offsets.h"
#include "broker/sink.h"
#include "broker/source.h"

struct consumer_parts {
    rd_kafka_t *client;
    struct offsets *offsets;
    struct member *member;
    struct claim *claim; /* NULL if the source commits by itself */
};

/** For a source of consumer.h, and valid as long as it lives. Threads: any. */
struct consumer_parts consumer_parts(const struct source *source);

/** For a sink of producer.h. */
rd_kafka_t *producer_client(const struct sink *sink);
/** How often its client has reported trouble with brokers, such as a broken connection. */
uint64_t producer_trouble_count(const struct sink *sink);

/**
 * True for permanent refusals that are about the topic, not the record: it is missing or forbidden.
 */
bool producer_is_about_topic(rd_kafka_resp_err_t code);

/**
 * Says in `err` that the record was refused: ERR_PUBLISH_REFUSED, or ERR_BROKER where the operator
 * must mend something.
 */
void producer_refuse(const struct sink *sink, const struct record *record,
    rd_kafka_resp_err_t native, const char *reason, struct error *err);

/**
 * True for refusals of a whole batch that only one record of it, or their sum, may have caused: the
 * others can be sent again.
 */
bool producer_is_about_batch(rd_kafka_resp_err_t code);

/** True for every permanent refusal: sending the record again cannot help. */
bool producer_is_final(rd_kafka_resp_err_t code);

#endif

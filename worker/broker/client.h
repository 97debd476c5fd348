/**
 * What the consumer and the producer share of librdkafka: how a client is configured, and how it
 * speaks of trouble. Only for use inside broker/ and bench/.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "broker/delivery.h"
#include "broker/kafka_options.h"

/** Who is told what happens; embedded in the consumer and the producer. */
struct client_events {
    kafka_event_fn *on_event;
    void *context;
    const char *name;           /* "kafka consumer" */
    uint64_t quiet_until_ns[2]; /* about connections; about all of them */
};

struct client_setting {
    const char *key;
    const char *value;
};

/**
 * A configuration for rd_kafka_new(): `defaults`, over them the user's settings, over those what
 * our guarantees need. Both tables end with a NULL key. `section` is where the user's settings
 * stand, such as "kafka.consumer". ERR_CONFIG names the key that librdkafka refuses.
 */
MUST_CHECK enum err client_conf_create(const struct kafka_options *options, const char *section,
    const struct client_setting *defaults, const struct client_setting *required,
    rd_kafka_conf_t **ret, struct error *err);

/** One more key of it, as above. */
MUST_CHECK enum err client_conf_set(rd_kafka_conf_t *conf, const char *section, const char *key,
    const char *value, struct error *err);

/** Consumes `conf`. Log lines of librdkafka arrive in the client's own queue. */
MUST_CHECK enum err client_create(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *section,
    rd_kafka_t **ret, struct error *err);

/**
 * Passes on that `reason` happened, which librdkafka goes on after. Of connections that fail again
 * and again (newer versions of it try 20 times a second) it tells once in 10 seconds.
 */
void client_report(struct client_events *events, rd_kafka_resp_err_t native, const char *reason);

/** Passes on a fact, or a line of librdkafka's own log. */
__attribute__((format(printf, 3, 4))) void client_say(
    const struct client_events *events, enum log_level level, const char *format, ...);

/** For `err`: why a client is lost for good. ERR_BROKER. */
enum err client_lost(struct error *err, rd_kafka_resp_err_t native, const char *reason);

/** Whether a broker has ever answered it. Asks nobody. */
bool client_has_met_broker(rd_kafka_t *client);

/** Errors of a group member that no waiting mends. */
bool client_is_final(rd_kafka_resp_err_t code);

/**
 * Lends a message and its first `headers_max` headers, without its position. Consumes `message`,
 * which is destroyed with the loan; at once, and NULL, when memory is short. A message with more
 * headers is kept at once: librdkafka's list of them takes many times their bytes.
 */
struct delivery *client_lend_message(rd_kafka_message_t *message, size_t headers_max);

#endif

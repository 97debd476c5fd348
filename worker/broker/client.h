/**
 * What the consumer and the producer share: how a client of librdkafka is configured, and how its
 * events are reported. Only for use inside broker/ and bench/.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "broker/delivery.h"
#include "broker/kafka_options.h"

/** Where events are reported; embedded in the consumer and the producer. */
struct client_events {
    kafka_event_fn *on_event;
    void *context;
    const char *name;           /* "kafka consumer" */
    uint64_t quiet_until_ns[2]; /* for events about one connection; for those about all of them */
};

struct client_setting {
    const char *key;
    const char *value;
};

/**
 * A configuration for rd_kafka_new(): `defaults`, overridden by the user's settings, overridden by
 * what our guarantees need. Both tables end with a NULL key. `section` is the section of the user's
 * settings, such as "kafka.consumer". Errors: ERR_CONFIG names the key that librdkafka refuses.
 */
MUST_CHECK enum err client_conf_create(const struct kafka_options *options, const char *section,
    const struct client_setting *defaults, const struct client_setting *required,
    rd_kafka_conf_t **ret, struct error *err);

/** Sets one more key. Errors: as above. */
MUST_CHECK enum err client_conf_set(rd_kafka_conf_t *conf, const char *section, const char *key,
    const char *value, struct error *err);

/** The value of a key that is a number; 0: it is none. */
uint64_t client_conf_number(const rd_kafka_conf_t *conf, const char *key);

/** What a client was configured with. False, and "": it is not set, or longer than `size`. */
bool client_read_conf(rd_kafka_t *client, const char *key, char *ret, size_t size);

/** Consumes `conf`. librdkafka's log lines arrive in the client's own queue. */
MUST_CHECK enum err client_create(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *section,
    rd_kafka_t **ret, struct error *err);

/**
 * Ends a client, of a consumer one that is closed, and waits for that for 2 s at most: after a
 * topic was deleted, librdkafka 2.0.2 waits for ever. Such a client is left to the end of the
 * process; its callbacks are not called any more. NULL is fine.
 */
void client_destroy(rd_kafka_t *client);

/**
 * A client that asks about the group of `member`, with its settings, and never joins it. It is told
 * what was committed before transactions that are open. The member reports its trouble with the
 * same brokers. NULL when memory is short.
 */
MUST_CHECK rd_kafka_t *client_create_beside(rd_kafka_t *member);

/**
 * Reports an event that librdkafka recovers from by itself. Connections that fail again and again
 * (newer versions try 20 times a second) are reported once in 10 seconds.
 */
void client_report(struct client_events *events, rd_kafka_resp_err_t native, const char *reason);

/** Reports a fact, or a line of librdkafka's log. */
__attribute__((format(printf, 3, 4))) void client_say(
    const struct client_events *events, enum log_level level, const char *format, ...);

/** Fills in `err` with why a client is lost for good. ERR_BROKER. */
enum err client_lost(struct error *err, rd_kafka_resp_err_t native, const char *reason);

/** Whether a broker has ever answered this client. Sends no request. */
bool client_has_met_broker(rd_kafka_t *client);

/** True for errors of a group member that do not pass with time. */
bool client_is_final(rd_kafka_resp_err_t code);

/**
 * Makes a delivery that lends the message's bytes and its first `headers_max` headers, without its
 * position. Consumes `message`, which is destroyed when the loan ends, or at once if memory is
 * short (NULL). A message with more headers is copied at once, because librdkafka's list of headers
 * takes many times their bytes.
 */
struct delivery *client_lend_message(rd_kafka_message_t *message, size_t headers_max);

#endif

/**
 * Creates sources and sinks from the configuration: Kafka, the embedded broker, or files.
 *
 * The clients of broker/ have options of their own, and are tested without a configuration.
 * Commands and the benchmark create the same clients. Events that the clients recover from are
 * logged here.
 *
 * Lifetime: source and sinks go to executor_run(), which owns them; the rest to connection_fini().
 */
#ifndef PIPELINE_CONNECT_H
#define PIPELINE_CONNECT_H

#include "broker/committed.h"
#include "broker/reader.h"
#include "broker/sink.h"
#include "broker/source.h"
#include "settings/settings.h"

struct embedded;

struct connection {
    struct source *source;
    struct sink *sink;
    struct sink *telemetry;         /* a sink of its own; NULL: none is published */
    struct sink *feed;              /* another, for the progress of long jobs; NULL: as well */
    struct reader *control;         /* NULL without topics.control */
    struct file_progress *progress; /* NULL unless the progress of files is kept */
    struct embedded *embedded;      /* NULL unless the broker was started for it */
};

/** What an executor keeps, so that its group recognises it after a restart. */
struct membership {
    const char *instance_id; /* used if kafka.instance_id is empty; "": none */
    uint64_t owner;          /* identifies its state folder; 0: none */
};

/** Starts the broker that `broker: embedded` asks for; without that, *ret is NULL. Errors: as
 * embedded_create(). */
MUST_CHECK enum err connect_start_broker(
    const struct settings *settings, struct embedded **ret, struct error *err);

/**
 * Creates the consumer and the producer of the executor of `device`. With `broker: embedded` that
 * broker is at the address `embedded`; NULL: it is started, and ends with the connection. It does
 * not wait for brokers that do not answer; those that do are asked where topics.control is to be
 * read from. Errors: ERR_BROKER, if they refuse the worker or that topic. A
 * refusal that comes after they accepted it is treated as an outage.
 */
MUST_CHECK enum err connect_kafka(const struct settings *settings, uint32_t device,
    const struct membership *membership, const char *embedded, struct connection *ret,
    struct error *err);

/** With `delivery: exactly_once`, how many messages a transaction answers at most. */
uint32_t connect_transaction_messages(const struct settings *settings);

/**
 * For `check --connect`: whether the brokers accept the worker and know all topics, with
 * kafka.consumer for the job topics and kafka.producer for the others. Calls `on_problem` for each
 * problem, and returns the code of the last one. ERR_OK if there is none, or if the broker is
 * embedded.
 */
MUST_CHECK enum err connect_check(const struct settings *settings,
    void (*on_problem)(void *context, const struct error *err), void *context);

/** Files instead of a broker; "-" is standard input and output. */
struct file_paths {
    const char *jobs, *results;
    const char *dead_letters, *telemetry, *progress; /* NULL: not written */
};

/**
 * `progress_room` is FILE_PROGRESS_BYTES that outlive the process; NULL: no later process continues
 * the run.
 */
MUST_CHECK enum err connect_files(const struct settings *settings, const struct file_paths *paths,
    void *progress_room, struct connection *ret, struct error *err);

/** Fails if `broker: embedded` has no such topic. Errors: ERR_BROKER, ERR_NO_MEMORY. */
MUST_CHECK enum err connect_check_topic(
    const struct settings *settings, const char *topic, struct error *err);

/**
 * For commands beside the worker: a producer, and a reader of one topic, which may also return
 * messages older than `from_unix_ms`. With `broker: embedded` they connect to the running worker's
 * broker, which they find through embedded.address_file; they wait up to 10 s for that file.
 */
MUST_CHECK enum err connect_producer(
    const struct settings *settings, struct sink **ret, struct error *err);
MUST_CHECK enum err connect_reader(const struct settings *settings, const char *topic,
    uint64_t from_unix_ms, struct reader **ret, struct error *err);

/** What kafka.group has committed, as committed_read() says it. */
MUST_CHECK enum err connect_committed(const struct settings *settings,
    const struct position *position, struct committed *ret, struct error *err);

/** Ends what the executor does not own. */
void connection_fini(struct connection *connection);

#endif

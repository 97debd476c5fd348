/**
 * Sources and sinks as the configuration names them: Kafka, the embedded broker, or files.
 *
 * Of broker/, only this file knows the settings: the clients take options of their own, and are
 * tested without a configuration. It is not in pipeline/, because commands and the benchmark build
 * the same clients. What the clients go on after is logged here.
 *
 * Lifetime: source and sinks go to executor_run(), which owns them; the rest to connection_fini().
 */
#ifndef BROKER_CONNECT_H
#define BROKER_CONNECT_H

#include "broker/reader.h"
#include "broker/sink.h"
#include "broker/source.h"
#include "settings/settings.h"

struct embedded;

struct connection {
    struct source *source;
    struct sink *sink;
    struct sink *telemetry;         /* a sink of its own; NULL where none is published */
    struct reader *control;         /* NULL without topics.control */
    struct file_progress *progress; /* NULL unless that of files is kept */
    struct embedded *embedded;      /* NULL unless `broker: embedded` */
};

/** What the executor keeps, by which its group knows it again. */
struct membership {
    const char *instance_id; /* where kafka.instance_id is empty; "": none */
    uint64_t owner;          /* names its state, so that it is told from others; 0: none */
};

/**
 * Consumer group and producer of the executor of `device`; starts the embedded broker where it is
 * configured. ERR_BROKER where the brokers refuse us; that they are there is not waited for. A
 * refusal that comes later, once they have taken us, is an outage like any other.
 */
MUST_CHECK enum err connect_kafka(const struct settings *settings, uint32_t device,
    const struct membership *membership, struct connection *ret, struct error *err);

/**
 * For `check --connect`: whether the brokers take us and know all topics, those of jobs for
 * kafka.consumer and the others for kafka.producer. Each problem is told to `on_problem`. Returns
 * the last one's code; ERR_OK where there is none, and where the broker is embedded.
 */
MUST_CHECK enum err connect_check(const struct settings *settings,
    void (*on_problem)(void *context, const struct error *err), void *context);

/** Files instead of a broker; "-" is standard input and output. */
struct file_paths {
    const char *jobs, *results;
    const char *dead_letters, *telemetry; /* NULL: none is written */
};

/** `progress_room` is FILE_PROGRESS_BYTES that outlive the process; NULL: no other goes on. */
MUST_CHECK enum err connect_files(const struct settings *settings, const struct file_paths *paths,
    void *progress_room, struct connection *ret, struct error *err);

/**
 * For commands beside the worker: a producer, and a reader of one topic, which may bring what is
 * older than `from_unix_ms`, too. Where the configuration
 * says `broker: embedded` they speak to the running worker's, found through embedded.address_file,
 * for which they wait up to 10 s.
 */
MUST_CHECK enum err connect_producer(
    const struct settings *settings, struct sink **ret, struct error *err);
MUST_CHECK enum err connect_reader(const struct settings *settings, const char *topic,
    uint64_t from_unix_ms, struct reader **ret, struct error *err);

/** Ends what outlives the executor. */
void connection_fini(struct connection *connection);

#endif

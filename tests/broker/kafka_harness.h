/**
 * What tests against a Kafka broker share: a broker, a worker's consumer and producer made for
 * tests, and a look at what a group has committed.
 *
 * What a test is linked with decides on its broker: tests/world has one of a world, and
 * kafka_harness.c librdkafka's embedded one, or a real one if GPU_WORKER_TEST_KAFKA has its
 * address.
 *
 * Requests have KAFKA_PATIENCE_MS; other waiting is support/wait.h's.
 */
#ifndef TESTS_KAFKA_HARNESS_H
#define TESTS_KAFKA_HARNESS_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "broker/consumer.h"
#include "broker/producer.h"
#include "broker/requests.h"

enum { KAFKA_PATIENCE_MS = 120000, KAFKA_POLL_MS = 20 };

/** A broker with one topic for jobs, named so that no other test or run meets it. */
struct broker {
    rd_kafka_t *client;               /* admin's; carries the embedded cluster */
    rd_kafka_mock_cluster_t *cluster; /* NULL: another broker */
    char bootstrap[128];
    char jobs[64];
    char results[64];
    char group[64];
};

/** False: librdkafka's embedded one. It throws offsets of transactions away and shows aborted
 * records, refuses commits while members join, creates any topic that is asked for, and cannot do
 * some of what is said below. */
bool kafka_is_complete(void);

/** Whether it fails as it is told to, by the functions below; a real one does not. */
bool kafka_obeys(void);

/** Whether cooperative groups do what they promise; those of older librdkafkas do not. */
bool kafka_cooperates(void);

void broker_start(struct broker *broker, int partitions);
void broker_stop(struct broker *broker);
void broker_create_topic(struct broker *broker, const char *topic, int partitions);

/** One whose broker refuses larger batches; embedded brokers cannot. */
void broker_create_narrow_topic(
    struct broker *broker, const char *topic, const char *message_bytes_max);
/** One whose broker refuses messages without a key; real brokers only. */
void broker_create_compacted_topic(struct broker *broker, const char *topic);

/** Deletes the topic of jobs, and creates it anew; embedded brokers cannot. */
void broker_recreate_jobs(struct broker *broker, int partitions);

/** The topic of jobs has so many partitions from now on; embedded brokers cannot. */
void broker_add_partitions(struct broker *broker, int partitions);

/** Embedded brokers create any topic that is asked for; this one they deny. Others have none that
 * nobody creates. */
void broker_hide_topic(struct broker *broker, const char *topic, bool hidden);

/** No ids of topics are told, as by embedded brokers and old ones. */
void broker_hide_ids(struct broker *broker);

/** The next `count` requests of this kind are answered with this. */
void broker_refuse(
    struct broker *broker, enum request request, rd_kafka_resp_err_t code, int count);
/** Ends what is left of it. */
void broker_accept(struct broker *broker, enum request request);

/** No request is answered, until it comes up. */
void broker_go_down(struct broker *broker);
void broker_come_up(struct broker *broker);

/** As retention does; embedded brokers cannot. */
void broker_delete_records(const struct broker *broker, int32_t partition, int64_t before);

/** -1: nothing is committed. */
int64_t broker_committed(const struct broker *broker, int32_t partition);
/** What is committed, with the metadata beside it as text, less the id of the topic; "" is none. */
int64_t broker_committed_metadata(
    const struct broker *broker, int32_t partition, char *text, size_t size);
/** Commits in the group's name; nobody may be in it. */
void broker_commit(
    const struct broker *broker, int32_t partition, int64_t offset, const char *metadata);
int64_t broker_end(const struct broker *broker, int32_t partition);
void broker_wait_for_commit(
    struct source *source, const struct broker *broker, int32_t partition, int64_t offset);

/** How many committed records the topic of results has. */
int broker_count_results(const struct broker *broker);

/** A client as librdkafka makes it; `key`: of a setting, or NULL. */
rd_kafka_t *kafka_client(
    rd_kafka_type_t type, const char *bootstrap, const char *key, const char *value);

/** Events of a client, counted. */
struct events {
    int count;
    int errors;   /* with an error */
    int warnings; /* or worse */
    int worst_level;
    int last_native;
    char last_error[512];
    char last_fact[512];
};
void events_note(void *context, enum log_level level, const char *what, const struct error *err);

struct setting {
    char *key, *value;
};

/**
 * For groups that soon miss a member who left without a word; an embedded broker also takes as long
 * to hand out partitions again. Other members are missed after KAFKA_PATIENCE_MS, so that none is
 * put out because the machine had no time for it.
 */
extern const struct setting kafka_short_session[];

/** A consumer with short intervals; `settings` ends with a NULL key, or is NULL. */
struct source *consumer_start(
    const struct broker *broker, struct events *events, const struct setting *settings);
struct source *consumer_start_draining(
    const struct broker *broker, struct events *events, uint32_t drain_timeout_ms);
/** One whose commits are a transaction's. */
struct source *consumer_start_for_transactions(
    const struct broker *broker, struct events *events, const struct setting *settings);
void consumer_stop(struct source *source);

/** One poll; the message is destroyed, its position returned in `ret`. False: none came. */
bool consumer_take(struct source *source, struct position *ret);

/** Polls until `count` messages have come. */
void consumer_take_many(struct source *source, struct position *positions, size_t count);

/** Polls a source that brings nothing until it fails; returns its failure. */
enum err consumer_fail(struct source *source, struct error *err);

struct sink *producer_start(
    const struct broker *broker, struct events *events, const struct setting *settings);

/** A record that remembers how it was settled. */
struct sent {
    struct record record; /* first: on_settled gets its address */
    int settled_count;
    enum err code;
    struct error err;
};
void sent_note(struct record *record, enum err code, const struct error *err);
void sent_wait(struct sink *sink, const struct sent *sent);

/** Produces numbered messages "0", "1" ... to one partition of the jobs topic. */
void broker_produce(const struct broker *broker, int32_t partition, int first, int count);

/** Produces in a transaction of its own; embedded brokers cannot. */
enum transaction_end { COMMITTED, ABORTED };
void broker_produce_in_transaction(
    const struct broker *broker, int32_t partition, int count, enum transaction_end end);

#endif

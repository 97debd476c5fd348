/**
 * The functions of librdkafka that the worker calls and that reach brokers, over the cluster of a
 * world. What is only data (configurations, lists of partitions, headers, texts of errors) is the
 * library's own. Private to tests/world.
 *
 * conformance_test.c compares it with Apache Kafka, and so do the tests of worker/broker that run
 * with both. Not there: other assignors than range and cooperative-sticky, groups that change
 * theirs, brokers that fail one by one, compaction, quotas and the right to do things, and limits
 * of what is fetched.
 *
 * A client has no threads: what librdkafka does beside its caller is done when that calls, so a
 * request may come later than it would, and its answer too, but in no order that could not be.
 */
#ifndef TESTS_WORLD_KAFKA_H
#define TESTS_WORLD_KAFKA_H

#include "world/cluster.h"

enum { KAFKA_FETCH_MAX = 64, KAFKA_ID_SIZE = 512 };

/* A partition that is read. */
struct reading {
    char topic[CLUSTER_NAME_SIZE];
    int32_t partition;
    int64_t next;            /* to fetch */
    int64_t consumed;        /* the next one for the caller; NO_OFFSET: none was taken */
    int64_t told_end;        /* the last end that was told; NO_OFFSET: none */
    int64_t low, end;        /* as heard with the last fetch; NO_OFFSET: not heard */
    uint64_t next_ns;        /* it is not fetched from before */
    bool is_missing;         /* when last looked for */
    bool is_paused, is_over; /* the latter: it was told that it has no offset to go on from */
};

/* The first member is what the caller sees. */
struct message {
    rd_kafka_message_t seen;
    const struct log_record *record; /* NULL: it tells an error, or an end */
    char *reason;                    /* NULL: that of its code */
    rd_kafka_headers_t *headers;     /* NULL: not asked for yet */
    rd_kafka_t *lender;              /* NULL: its caller does not have it */
    struct message *next;
};

struct rd_kafka_topic_s {
    char name[CLUSTER_NAME_SIZE];
    bool is_missing;   /* as was told */
    int32_t partition; /* for records without a key, until then */
    uint64_t until_ns;
    struct rd_kafka_topic_s *next;
};

/* The caller's answer to its callback. */
enum awaits { AWAITS_NOTHING, AWAITS_ASSIGNING, AWAITS_UNASSIGNING };

enum txn_phase { PHASE_NONE, PHASE_READY, PHASE_BEGUN, PHASE_FAILED, PHASE_FATAL };

struct sent; /* a record on its way (kafka_producer.c) */

struct rd_kafka_s {
    rd_kafka_type_t type;
    rd_kafka_conf_t *conf;
    void *opaque;
    void (*on_rebalance)(
        rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void (*on_error)(rd_kafka_t *, int, const char *, void *);
    void (*on_log)(const rd_kafka_t *, int, const char *, const char *);
    bool has_log_queue; /* and nobody reads it: nothing is logged */
    struct rd_kafka_topic_s *topics;
    struct rd_kafka_queue_s *main_queue;
    rd_kafka_resp_err_t fatal;
    bool is_stray; /* it knows no broker of this world */
    bool has_met_broker;
    bool is_yielded; /* its poll ends */
    uint64_t outages_told;
    size_t queue_count, lent_count; /* queues, and messages that its caller has */
    char group[KAFKA_ID_SIZE];

    /* a consumer's */
    struct member *member;                         /* NULL: it knows of none */
    int32_t generation;                            /* of its assignment; -1: none */
    rd_kafka_topic_partition_list_t *subscription; /* NULL: none */
    struct rd_kafka_queue_s *closing_queue;        /* NULL: it is not closing */
    bool is_closed, is_lost;
    enum awaits awaits;
    bool is_cooperative;                    /* what follows is empty otherwise */
    rd_kafka_topic_partition_list_t *owned; /* what it tells the group that it has */
    int32_t owned_generation;               /* in which it had that */
    rd_kafka_topic_partition_list_t *added; /* to be assigned after what leaves; NULL: none */
    bool rejoins;                           /* once its caller has answered */
    bool is_joining, has_unsubscribed;
    uint64_t next_beat_ns, next_look_ns;
    struct reading readings[CLUSTER_TOPICS * CLUSTER_PARTITIONS];
    size_t reading_count;
    struct message *first, *last; /* fetched */

    /* a producer's */
    struct sent *first_sent;
    size_t sent_count, sent_max, record_bytes_max;
    int32_t (*choose_partition)(const rd_kafka_topic_t *, const void *key, size_t key_size,
        int32_t count, void *topic_opaque, void *context); /* NULL: by chance */
    void *topic_opaque;
    struct producer_id *id; /* NULL: not taken */
    int16_t epoch;
    enum txn_phase phase;
    rd_kafka_resp_err_t refusal; /* why it must abort */
};

/** A request's way there, or back. */
void kafka_pass_time(void);

/** Until then, no broker answers this client. */
uint64_t kafka_down_until_ns(const rd_kafka_t *client);
bool kafka_is_down(const rd_kafka_t *client);

/** Tells the client's caller of each outage once. */
void kafka_tell_outage(rd_kafka_t *client);

/** Waits for brokers that answer. False: `until_ns` came first. */
bool kafka_reach(rd_kafka_t *client, uint64_t until_ns);

/** What a request is answered with where brokers were told to refuse it; NO_ERROR: it is not. The
 * library itself asks again where that helps. */
rd_kafka_resp_err_t kafka_refusal(enum request request);

/** clock_ns() in so many milliseconds; negative: never. */
uint64_t kafka_until_ns(int timeout_ms);

uint64_t kafka_number(const rd_kafka_t *client, const char *key);
void kafka_text(const rd_kafka_t *client, const char *key, char *ret, size_t size);

rd_kafka_topic_t *kafka_topic(rd_kafka_t *client, const char *name);

/* ---- queues ---- */

enum event_kind { EVENT_COMMIT, EVENT_REBALANCE, EVENT_REPORTS, EVENT_DESCRIPTIONS, EVENT_ERROR };

/* Of topics, with their ids. */
struct description {
    char name[CLUSTER_NAME_SIZE], id[32];
    rd_kafka_error_t *error;
};

struct descriptions {
    size_t count;
    bool are_told;
    struct description items[CLUSTER_TOPICS];
    const void *list[CLUSTER_TOPICS];
};

struct rd_kafka_op_s {
    enum event_kind kind;
    rd_kafka_resp_err_t code;
    uint64_t due_ns;
    rd_kafka_topic_partition_list_t *partitions;
    void (*on_commit)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void *context;
    struct message *reports, *next_report;
    struct descriptions *descriptions;
    struct rd_kafka_op_s *next;
};

struct rd_kafka_queue_s {
    rd_kafka_t *client;
    unsigned references;
    struct rd_kafka_op_s *first;
};

void kafka_queue_add(rd_kafka_queue_t *queue, rd_kafka_event_t *event);

/** When what is asked for now is answered. */
uint64_t kafka_answer_ns(void);

/** Of a producer: sends what is due, and reports what was acknowledged. Returns when to look again;
 * UINT64_MAX: nothing is on its way. */
uint64_t kafka_producer_serve(rd_kafka_t *producer);
void kafka_producer_fini(rd_kafka_t *producer);

/** Of a consumer: what the group wants of it. */
void kafka_consumer_serve(rd_kafka_t *consumer);
void kafka_consumer_fini(rd_kafka_t *consumer, bool leaves);

void kafka_member_begin(rd_kafka_t *consumer);
void kafka_member_end(rd_kafka_t *consumer, bool leaves);

/** Reads these, too. */
void kafka_read(rd_kafka_t *consumer, const rd_kafka_topic_partition_list_t *partitions);
bool kafka_reads(rd_kafka_t *consumer, const rd_kafka_topic_partition_t *partition);
void kafka_forget(rd_kafka_t *consumer, const rd_kafka_topic_partition_t *partition);
void kafka_forget_all(rd_kafka_t *consumer);

/** What was fetched and not taken is fetched again. */
void kafka_rewind(rd_kafka_t *consumer);

/** As what its poll returns. */
void kafka_tell_error(rd_kafka_t *consumer, rd_kafka_resp_err_t code);
void kafka_tell_missing(rd_kafka_t *consumer, const char *topic);

/** As a member of that generation. */
rd_kafka_resp_err_t kafka_commit(
    rd_kafka_t *consumer, int32_t generation, rd_kafka_topic_partition_list_t *partitions);

/** An error for the functions that return one. */
rd_kafka_error_t *kafka_error(rd_kafka_resp_err_t code, bool is_retriable, bool must_abort);

#endif

#include "broker/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pulse.h"
#include "broker/claim.h"
#include "broker/client.h"
#include "broker/clients.h"
#include "broker/commit_list.h"
#include "broker/entries.h"

enum {
    START_WAIT_MS = 1000,   /* for one try to take over our id */
    OFFSETS_WAIT_MS = 5000, /* for one try to send offsets */
    WITNESS_WAIT_MS = 2000,
    UNTIL_TIMEOUT_MS = -1, /* what is left of transaction.timeout.ms */
    RETRY_MS = 100,
    REPEAT_MAX_MS = 1600,   /* the first repetition waits RETRY_MS, the next twice as long ... */
    REPLACE_WAIT_MS = 5000, /* longer than a heartbeat: by then a lost name is known */
    FLUSH_POLL_MS = 10,
    ABORT_WAIT_MS = 2000,
    QUIET_SHARE = 10 /* of the interval, without a record */
};

enum phase {
    PHASE_STARTING,   /* transactions of an earlier process with our id are being ended */
    PHASE_IDLE,       /* no transaction is open */
    PHASE_OPEN,       /* records are sent */
    PHASE_DELIVERING, /* no more are sent; the brokers have not acknowledged all of them */
    PHASE_OFFSETS,
    PHASE_CHECKING, /* whether the offsets are of the topics that they are for */
    PHASE_COMMITTING,
    PHASE_ABORTING,
    PHASE_RETIRING, /* no transaction is open; the next one will have another producer */
    PHASE_FENCED,   /* the producer cannot be used any more; another one replaces it */
    PHASE_IN_DOUBT, /* it was fenced while it committed */
    PHASE_LOST
};

struct transaction {
    struct sink sink;
    struct producer_options producer_options; /* for the next producer, if this one is fenced */
    char *transactional_id;
    struct sink *producer;
    rd_kafka_t *client; /* the producer's */
    const struct source *source;
    rd_kafka_t *consumer; /* the source's */
    rd_kafka_t *witness;  /* tells what the group has committed; NULL: it was not asked yet */
    bool keeps_commits; /* the group told of one; librdkafka's own brokers keep none of transactions
                         */
    struct offsets *offsets; /* the source's */
    struct member *member;   /* the source's */
    struct claim *claim;     /* the source's */
    struct client_events events;
    uint64_t interval_ns, patience_ns;     /* no request is given up earlier */
    uint32_t messages_max, messages_limit; /* the limit is lower after a topic refused records */

    enum phase phase;
    uint64_t retry_ns;      /* nothing is tried before this time */
    uint64_t repeat_ms;     /* how long the next repetition waits */
    struct error failure;   /* ERR_OK: none */
    struct entries entries; /* of the open transaction, in the order of their sending */
    struct entries waiting; /* later ones, for the next transaction */
    bool is_flushing;
    bool has_settled; /* records, with this call: the caller finishes their messages after it */

    /* of the open transaction */
    uint64_t opened_ns, last_sent_ns;
    uint64_t ending_ns; /* no more records are taken since then */
    uint64_t troubles;  /* the producer's count before the transaction */
    size_t sent_count, undelivered_count, answered_count;
    bool has_failed, has_culprit; /* it must be aborted; a topic that refused a record is known */
    bool is_crowded;              /* a batch of it was refused */
    bool is_claim;                /* it only commits a claim */
    bool is_single;               /* it answers no more than one message */
    rd_kafka_resp_err_t refusal;  /* why it must be aborted; 0: not because of a broker's answer */
    const struct position **positions; /* that are committed with it */
    rd_kafka_topic_partition_list_t *commits;
    rd_kafka_consumer_group_metadata_t *group;

    uint64_t closed_ns; /* the last one */
    bool is_in_doubt;   /* it may have been committed */
    bool is_replaced;   /* the producer, and nothing has been committed since */
};

/* A record that is refused while it is being sent is not part of the transaction. If a configured
 * topic refuses records, the operator must correct it, and repeating does not help. A record that
 * is refused with a batch may be innocent, unless its message is alone. */
static void on_delivered(struct record *sent, enum err code, const struct error *err) {
    struct entry *entry = (struct entry *)sent;
    struct transaction *t = entry->transaction;
    t->undelivered_count--;
    entry->is_delivered = code == ERR_OK;
    if (code == ERR_OK || entry->err.code != ERR_OK) return;
    entry->err = *err;
    if (entry->is_being_sent && code == ERR_PUBLISH_REFUSED) return;
    t->has_failed = true;
    if (!t->is_single && producer_is_about_batch(err->native)) {
        t->is_crowded = true;
        entry->err.code = ERR_OK;
        return;
    }
    t->has_culprit = t->has_culprit || code == ERR_PUBLISH_REFUSED;
    if (code == ERR_BROKER && producer_is_final(err->native)) t->failure = *err;
}

/* The sink is lost: from now on it only settles records with an error. */
static void lose(struct transaction *t, rd_kafka_resp_err_t native, const char *reason) {
    client_lost(&t->failure, native, reason);
    t->phase = PHASE_LOST;
}

static bool is_fenced(rd_kafka_resp_err_t native) {
    return native == RD_KAFKA_RESP_ERR__FENCED || native == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
           native == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

/* The brokers ended a transaction that was open for too long, or another producer has our id. */
static void on_fenced(struct transaction *t, rd_kafka_resp_err_t native, const char *reason) {
    if (t->is_replaced) {
        error_set(&t->failure, ERR_BROKER, native,
            "give each worker a kafka.instance_id of its own, then start it again; no job is lost",
            "%s: another worker has this one's name: %s", rd_kafka_err2name(native), reason);
        t->phase = PHASE_LOST;
        return;
    }
    client_say(&t->events, LOG_WARN, "was fenced; another producer replaces it");
    t->is_in_doubt = t->is_in_doubt || t->phase == PHASE_COMMITTING;
    t->retry_ns = clock_ns() + REPLACE_WAIT_MS * 1000000ull;
    t->phase = PHASE_FENCED;
}

/* What librdkafka answered, checked in the order that its documentation asks for. UNKNOWN: the
 * brokers know no transaction to abort. LOST: the phase is set already. */
enum txn_status { TXN_OK, TXN_AGAIN, TXN_ABORT, TXN_UNKNOWN, TXN_LOST };

/* The producer cannot go on. */
static enum txn_status on_fatal(struct transaction *t, const rd_kafka_error_t *error) {
    char text[256];
    rd_kafka_resp_err_t native = rd_kafka_error_code(error);
    const char *reason = rd_kafka_error_string(error);
    if (native == RD_KAFKA_RESP_ERR__FATAL) {
        native = rd_kafka_fatal_error(t->client, text, sizeof text);
        reason = text;
    }
    /* the brokers refused all of its partitions */
    if (native == RD_KAFKA_RESP_ERR_INVALID_TXN_STATE && t->phase == PHASE_ABORTING)
        return TXN_UNKNOWN;
    if (is_fenced(native)) on_fenced(t, native, reason);
    else lose(t, native, reason);
    return TXN_LOST;
}

/* Consumes `error`. */
static enum txn_status take_status(struct transaction *t, rd_kafka_error_t *error) {
    if (error == NULL) return TXN_OK;
    enum txn_status status = TXN_LOST;
    if (rd_kafka_error_is_retriable(error)) status = TXN_AGAIN;
    else if (rd_kafka_error_txn_requires_abort(error)) status = TXN_ABORT;
    client_say(
        &t->events, LOG_DEBUG, "%s: %s", rd_kafka_error_name(error), rd_kafka_error_string(error));
    if (status == TXN_AGAIN) t->retry_ns = clock_ns() + RETRY_MS * 1000000ull;
    if (status == TXN_ABORT) t->refusal = rd_kafka_error_code(error);
    if (status == TXN_LOST) status = on_fatal(t, error);
    rd_kafka_error_destroy(error);
    return status;
}

/* Phases: each does what it can without waiting long, and sets the next one */

static void step_starting(struct transaction *t) {
    if (take_status(t, rd_kafka_init_transactions(t->client, START_WAIT_MS)) == TXN_OK)
        t->phase = t->is_in_doubt ? PHASE_IN_DOUBT : PHASE_IDLE;
}

/* Whether offsets are due without any record, as after a gap or at the end of a partition. Once
 * partitions are lost, committing is up to their next owner. */
static bool is_wanted(struct transaction *t) {
    if (t->waiting.first != NULL || claim_is_asked(t->claim)) return true;
    bool is_time = t->is_flushing || clock_ns() - t->closed_ns >= t->interval_ns;
    return is_time && !t->has_settled && offsets_is_due(t->offsets) &&
           !rd_kafka_assignment_lost(t->consumer);
}

static void step_idle(struct transaction *t) {
    if (!is_wanted(t) || take_status(t, rd_kafka_begin_transaction(t->client)) != TXN_OK) return;
    t->opened_ns = t->last_sent_ns = clock_ns();
    t->sent_count = t->undelivered_count = t->answered_count = 0;
    t->has_failed = t->has_culprit = t->is_crowded = false;
    t->is_claim = claim_is_asked(t->claim);
    t->is_single = t->messages_limit == 1;
    t->refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
    t->troubles = producer_trouble_count(t->producer);
    t->phase = PHASE_OPEN;
}

static void send_entry(struct transaction *t, struct entry *entry) {
    entry->sent = *entry->record;
    entry->sent.on_settled = on_delivered;
    t->undelivered_count++;
    t->last_sent_ns = clock_ns();
    entry->is_being_sent = true;
    sink_send(t->producer, &entry->sent);
    entry->is_being_sent = false;
    if (entry->err.code == ERR_PUBLISH_REFUSED) {
        entries_settle_before(&t->waiting, entry);
        return;
    }
    t->sent_count++;
    t->answered_count += entry->record->is_last;
    entries_add(&t->entries, entry);
}

static void step_open(struct transaction *t) {
    struct entry *entry;
    while (!t->is_claim && t->answered_count < t->messages_limit &&
           (entry = entries_take_first(&t->waiting)) != NULL)
        send_entry(t, entry);
    uint64_t now_ns = clock_ns();
    if (t->is_flushing || t->has_failed || t->sent_count == 0 ||
        t->answered_count >= t->messages_limit || now_ns - t->opened_ns >= t->interval_ns ||
        now_ns - t->last_sent_ns >= t->interval_ns / QUIET_SHARE) {
        t->ending_ns = now_ns;
        t->phase = PHASE_DELIVERING;
    }
}

static void add_commit(
    void *context, const char *topic, int32_t partition, const struct offsets_commit *commit) {
    struct transaction *t = context;
    if (!commit_list_add(t->commits, topic, partition, commit)) t->has_failed = true;
}

/*
 * Gets the membership before it checks the messages. If they are still ours after that, the
 * membership is either valid or refused by the brokers. The other way round, a new membership could
 * commit messages of one that has ended.
 */
static bool take_commits(struct transaction *t) {
    if (t->is_claim) return (t->commits = claim_take(t->claim, &t->group)) != NULL;
    t->group = member_get(t->member, t->consumer);
    if (t->group == NULL) return false;
    t->positions = entries_list_answered(&t->entries, t->answered_count);
    if (t->positions == NULL) return false;
    t->commits = rd_kafka_topic_partition_list_new(0);
    bool is_ours = offsets_take_commits(t->offsets, t->positions, t->answered_count, add_commit, t);
    return is_ours && !t->has_failed;
}

/* Fails the sink if the member has left for good: it could never commit. */
static bool is_member(struct transaction *t) {
    char text[256];
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(t->consumer, text, sizeof text);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) lose(t, code, text);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* librdkafka answers a call that is not valid now with it, and sends nothing. */
static rd_kafka_resp_err_t reason_of_failure(struct transaction *t) {
    rd_kafka_error_t *error = rd_kafka_begin_transaction(t->client);
    rd_kafka_resp_err_t native = rd_kafka_error_code(error); /* of NULL: none */
    rd_kafka_error_destroy(error);
    return native;
}

/*
 * If the brokers forbid a transaction to write to a topic, none of its records is sent, and it does
 * not tell which topic it is; nor do they tell what is wrong with a batch. So fewer and fewer
 * messages share a transaction, until one is alone.
 */
static void look_for_refusal(struct transaction *t) {
    rd_kafka_resp_err_t native = t->has_culprit || t->is_crowded ? 0 : reason_of_failure(t);
    if (!producer_is_about_topic(native) && !t->is_crowded) return;
    t->refusal = native;
    if (t->is_single) entries_refuse(&t->entries, t->producer, native, &t->failure);
    else t->messages_limit = t->answered_count > 1 ? (uint32_t)(t->answered_count / 2) : 1;
}

static void step_delivering(struct transaction *t) {
    if (!is_member(t)) return;
    if (t->has_failed) look_for_refusal(t);
    if (t->has_failed) t->phase = PHASE_ABORTING;
    else if (t->undelivered_count == 0) t->phase = take_commits(t) ? PHASE_OFFSETS : PHASE_ABORTING;
}

/* librdkafka requires that a retry has the same arguments. */
static void step_offsets(struct transaction *t) {
    rd_kafka_error_t *error = NULL;
    if (t->commits->cnt > 0)
        error =
            rd_kafka_send_offsets_to_transaction(t->client, t->commits, t->group, OFFSETS_WAIT_MS);
    enum txn_status status = take_status(t, error);
    if (status == TXN_OK) t->phase = t->commits->cnt > 0 ? PHASE_CHECKING : PHASE_COMMITTING;
    if (status == TXN_ABORT) t->phase = PHASE_ABORTING;
}

static rd_kafka_t *witness_of(struct transaction *t) {
    if (t->witness == NULL) t->witness = client_create_beside(t->consumer);
    if (t->witness != NULL)
        rd_kafka_poll(t->witness, 0); /* its callbacks, which may renew a token */
    return t->witness;
}

/*
 * While a topic is not there, librdkafka sends its offsets again and again; so another one of its
 * name may have taken them, which they do not mean. Brokers then have forgotten what the group had
 * committed for the one before. The offsets of a transaction that is open do not count yet.
 */
static void step_checking(struct transaction *t) {
    rd_kafka_topic_partition_list_t *told = rd_kafka_topic_partition_list_copy(t->commits);
    rd_kafka_t *witness = witness_of(t);
    bool may_commit = witness != NULL && commit_list_fetch(witness, told, WITNESS_WAIT_MS) ==
                                             RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0, count = may_commit ? told->cnt : 0; i < count; i++) {
        const rd_kafka_topic_partition_t *p = &told->elems[i];
        if (p->offset >= 0) t->keeps_commits = true;
        if (p->offset >= 0 || !commit_list_is_known(p)) continue;
        if (!t->is_claim) offsets_doubt(t->offsets, p->topic, p->partition);
        may_commit = false;
    }
    rd_kafka_topic_partition_list_destroy(told);
    t->phase = may_commit ? PHASE_COMMITTING : PHASE_ABORTING;
}

/*
 * A request that was given up and repeated may still be under way, for example in the socket of a
 * frozen broker. With our epoch it could end the next transaction, or take its offsets back. The
 * brokers refuse it once another producer has our id.
 */
static enum phase phase_of_next(const struct transaction *t) {
    sink_serve(t->producer, 0); /* reads events about its connections */
    bool has_waited = clock_ns() - t->ending_ns >= t->patience_ns;
    bool had_trouble = producer_trouble_count(t->producer) != t->troubles;
    return has_waited || had_trouble ? PHASE_RETIRING : PHASE_IDLE;
}

static void close_transaction(struct transaction *t, rd_kafka_resp_err_t code) {
    if (t->is_claim) claim_answer(t->claim, code);
    t->is_claim = false;
    if (t->commits != NULL) rd_kafka_topic_partition_list_destroy(t->commits);
    if (t->group != NULL) rd_kafka_consumer_group_metadata_destroy(t->group);
    free(t->positions);
    t->commits = NULL;
    t->group = NULL;
    t->positions = NULL;
    t->is_in_doubt = false;
    t->closed_ns = clock_ns();
}

static void succeed(struct transaction *t) {
    t->messages_limit =
        t->messages_limit < t->messages_max / 2 ? 2 * t->messages_limit : t->messages_max;
    for (int i = 0; i < t->commits->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &t->commits->elems[i];
        source_tell_committed(t->source, p->topic, p->partition, p->offset);
    }
    if (!t->is_claim)
        offsets_commits_made(t->offsets, t->positions, t->answered_count, t->keeps_commits);
    close_transaction(t, RD_KAFKA_RESP_ERR_NO_ERROR);
    t->phase = phase_of_next(t);
    t->is_replaced = false;
    t->repeat_ms = RETRY_MS;
    t->has_settled = t->answered_count > 0;
    entries_settle(entries_take(&t->entries));
}

static void step_committing(struct transaction *t) {
    enum txn_status status =
        take_status(t, rd_kafka_commit_transaction(t->client, UNTIL_TIMEOUT_MS));
    if (status == TXN_ABORT) t->phase = PHASE_ABORTING;
    if (status == TXN_OK) succeed(t);
}

/* All records that are not over wait for the next transaction. */
static void start_over(struct transaction *t, enum phase next) {
    struct entries over;
    offsets_commits_failed(t->offsets);
    close_transaction(t, t->refusal != 0 ? t->refusal : RD_KAFKA_RESP_ERR__TIMED_OUT);
    t->phase = next;
    entries_init(&over);
    struct entry *sent = entries_take(&t->entries), *waiting = entries_take(&t->waiting);
    entries_sort_out(sent, t->offsets, &t->waiting, &over);
    entries_sort_out(waiting, t->offsets, &t->waiting, &over);
    entries_settle_before(&t->waiting, over.first);
}

/* The group may go on refusing. What a topic refused is not repeated as it was. */
static void wait_to_repeat(struct transaction *t) {
    t->retry_ns = clock_ns_in(t->has_failed ? RETRY_MS : t->repeat_ms);
    if (!t->has_failed && t->repeat_ms < REPEAT_MAX_MS) t->repeat_ms *= 2;
}

/* Takes back what is under way first: librdkafka waits until all delivery reports were read. */
static void step_aborting(struct transaction *t) {
    rd_kafka_purge(t->client, RD_KAFKA_PURGE_F_QUEUE);
    if (t->undelivered_count > 0) return;
    enum txn_status status =
        take_status(t, rd_kafka_abort_transaction(t->client, UNTIL_TIMEOUT_MS));
    if (status != TXN_OK && status != TXN_UNKNOWN) return;
    client_say(&t->events, LOG_INFO,
        "aborted a transaction of %zu messages, which will be repeated", t->answered_count);
    wait_to_repeat(t);
    enum phase next = status == TXN_UNKNOWN ? PHASE_RETIRING : phase_of_next(t);
    start_over(t, t->failure.code == ERR_OK ? next : PHASE_LOST);
}

static bool replace_producer(struct transaction *t) {
    struct sink *next;
    if (producer_create(&t->producer_options, &next, &t->failure) != ERR_OK) {
        t->phase = PHASE_LOST;
        return false;
    }
    sink_destroy(t->producer);
    t->producer = next;
    t->client = producer_client(next);
    t->ending_ns = clock_ns();
    t->troubles = 0;
    return true;
}

static void step_retiring(struct transaction *t) {
    client_say(&t->events, LOG_INFO,
        "another producer replaces it, so that brokers refuse its late requests");
    if (replace_producer(t)) t->phase = PHASE_STARTING;
}

/* When the new producer starts, the brokers end what the old one has left open. */
static void step_fenced(struct transaction *t) {
    rd_kafka_purge(t->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    if (t->undelivered_count > 0 || !is_member(t) || !replace_producer(t)) return;
    t->is_replaced = true;
    if (t->is_in_doubt) t->phase = PHASE_STARTING;
    else start_over(t, PHASE_STARTING);
}

/* Asks the group how the transaction has ended. */
static void step_in_doubt(struct transaction *t) {
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(t->commits);
    rd_kafka_resp_err_t code = commit_list_fetch(t->consumer, committed, OFFSETS_WAIT_MS);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) t->retry_ns = clock_ns_in(RETRY_MS);
    else if (entries_were_committed(&t->entries, t->offsets, t->commits, committed)) succeed(t);
    else start_over(t, phase_of_next(t));
    rd_kafka_topic_partition_list_destroy(committed);
}

static void settle_lost(struct transaction *t) {
    entries_fail(&t->entries, &t->failure);
    entries_fail(&t->waiting, &t->failure);
}

/* First takes back what the producer still has. */
static void step_lost(struct transaction *t) {
    rd_kafka_purge(t->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    if (t->undelivered_count > 0) return;
    settle_lost(t);
    close_transaction(t, RD_KAFKA_RESP_ERR__FATAL);
    t->commits = claim_take(t->claim, &t->group); /* closed with the next step */
    t->is_claim = t->commits != NULL;
}

static void step(struct transaction *t) {
    static void (*const steps[])(struct transaction * t) = {[PHASE_STARTING] = step_starting,
        [PHASE_IDLE] = step_idle,
        [PHASE_OPEN] = step_open,
        [PHASE_DELIVERING] = step_delivering,
        [PHASE_OFFSETS] = step_offsets,
        [PHASE_CHECKING] = step_checking,
        [PHASE_COMMITTING] = step_committing,
        [PHASE_ABORTING] = step_aborting,
        [PHASE_RETIRING] = step_retiring,
        [PHASE_FENCED] = step_fenced,
        [PHASE_IN_DOUBT] = step_in_doubt,
        [PHASE_LOST] = step_lost};
    enum phase before;
    do {
        before = t->phase;
        if (clock_ns() >= t->retry_ns) steps[t->phase](t);
    } while (t->phase != before);
}

static void transaction_send(struct sink *sink, struct record *record) {
    struct transaction *t = (struct transaction *)sink;
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        struct error err;
        error_no_memory(&err, "no memory for a record");
        record->on_settled(record, ERR_NO_MEMORY, &err);
        return;
    }
    entry->record = record;
    entry->transaction = t;
    entries_add(&t->waiting, entry);
}

static void transaction_serve(struct sink *sink, int timeout_ms) {
    struct transaction *t = (struct transaction *)sink;
    sink_serve(t->producer, timeout_ms);
    pulse_idle(); /* waits for brokers end by the client's time-outs */
    t->has_settled = false;
    step(t);
    pulse_busy();
}

static bool is_flushed(struct transaction *t) {
    return t->phase == PHASE_LOST || (t->phase == PHASE_IDLE && !is_wanted(t));
}

static enum err transaction_flush(struct sink *sink, int timeout_ms, struct error *err) {
    struct transaction *t = (struct transaction *)sink;
    uint64_t deadline_ns = clock_ns_in((uint64_t)timeout_ms);
    t->is_flushing = true;
    transaction_serve(sink, 0);
    while (!t->has_settled && !is_flushed(t) && (timeout_ms < 0 || clock_ns() < deadline_ns))
        transaction_serve(sink, FLUSH_POLL_MS);
    t->is_flushing = false;
    if (t->phase == PHASE_LOST) {
        *err = t->failure;
        return err->code;
    }
    if (t->has_settled || is_flushed(t)) return ERR_OK;
    return error_set(err, ERR_TIMEOUT, 0, "check that the brokers can be reached",
        "a transaction was not committed within %d ms", timeout_ms);
}

/* Aborts an open transaction, so that readers can go on at once. */
static void abort_open(struct transaction *t) {
    uint64_t deadline_ns = clock_ns() + ABORT_WAIT_MS * 1000000ull;
    bool is_open = t->phase == PHASE_OPEN || t->phase == PHASE_DELIVERING ||
                   t->phase == PHASE_OFFSETS || t->phase == PHASE_CHECKING ||
                   t->phase == PHASE_ABORTING;
    if (!is_open) return;
    rd_kafka_purge(t->client, RD_KAFKA_PURGE_F_QUEUE);
    while (t->undelivered_count > 0 && clock_ns() < deadline_ns)
        sink_serve(t->producer, FLUSH_POLL_MS);
    rd_kafka_error_t *error = rd_kafka_abort_transaction(t->client, ABORT_WAIT_MS);
    if (error == NULL) return;
    client_say(&t->events, LOG_WARN, "could not abort a transaction; the brokers will: %s",
        rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

static void transaction_destroy(struct sink *sink) {
    struct transaction *t = (struct transaction *)sink;
    abort_open(t);
    if (t->phase != PHASE_LOST) lose(t, RD_KAFKA_RESP_ERR__DESTROY, "the sink ends");
    sink_destroy(t->producer); /* which settles what it still has */
    settle_lost(t);
    close_transaction(t, RD_KAFKA_RESP_ERR__DESTROY);
    client_destroy(t->witness);
    free(t->transactional_id);
    free(t);
}

enum err transaction_create(
    const struct transaction_options *options, struct sink **ret, struct error *err) {
    static const struct sink_operations operations = {.send = transaction_send,
        .serve = transaction_serve,
        .flush = transaction_flush,
        .destroy = transaction_destroy};
    struct transaction *t = calloc(1, sizeof *t);
    char *id = strdup(options->producer.transactional_id);
    enum err code = ERR_NO_MEMORY;
    if (t == NULL || id == NULL) {
        error_set(err, code, 0, "give the process more memory", "no memory for transactions");
        goto fail;
    }
    t->transactional_id = id;
    t->producer_options = options->producer;
    t->producer_options.transactional_id = id;
    code = producer_create(&t->producer_options, &t->producer, err);
    if (code != ERR_OK) goto fail;
    t->sink.operations = &operations;
    t->client = producer_client(t->producer);
    t->source = options->source;
    const struct consumer_parts parts = consumer_parts(options->source);
    t->consumer = parts.client;
    t->offsets = parts.offsets;
    t->member = parts.member;
    t->claim = parts.claim;
    t->events = (struct client_events){.on_event = options->producer.kafka.on_event,
        .context = options->producer.kafka.context,
        .name = "kafka producer"};
    t->interval_ns = options->commit_interval_ms * 1000000ull;
    uint64_t request_ms = client_conf_number(rd_kafka_conf(t->client), "socket.timeout.ms");
    t->patience_ns = (request_ms < OFFSETS_WAIT_MS ? request_ms : OFFSETS_WAIT_MS) * 1000000ull;
    t->messages_max = t->messages_limit = options->messages_max;
    t->repeat_ms = RETRY_MS;
    entries_init(&t->entries);
    entries_init(&t->waiting);
    *ret = &t->sink;
    return ERR_OK;
fail:
    free(id);
    free(t);
    return code;
}

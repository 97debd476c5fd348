/* Producers, with and without transactions (kafka.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world/kafka.h"
#include "world/scheduler.h"

enum { SEND_NS_MAX = 3000000, BATCH_BITS = 9, BATCH_MAX = 1 << BATCH_BITS, HEADERS_MAX = 300 };

/* From produceva() until its report. */
struct sent {
    char topic[CLUSTER_NAME_SIZE];
    int32_t partition;
    struct log_record record; /* which lends the caller's bytes */
    rd_kafka_headers_t *headers;
    struct log_header log_headers[HEADERS_MAX];
    void *context;
    uint64_t since_ns, due_ns; /* for the next of its two ways */
    bool is_over;              /* the broker has answered */
    bool is_purged;            /* its report waits for no broker */
    rd_kafka_resp_err_t code;
    int64_t offset;
    struct sent *next;
};

/* ---- partitions ---- */

/* As librdkafka does: records of a key share one, and others stay with one for a while. */
static int32_t choose_by_default(
    rd_kafka_t *client, rd_kafka_topic_t *topic, const struct log_record *record, int32_t count) {
    if (record->key_size > 0)
        return rd_kafka_msg_partitioner_consistent(
            topic, record->key, record->key_size, count, NULL, NULL);
    if (scheduler_now_ns() >= topic->until_ns) {
        topic->partition = (int32_t)scheduler_draw((uint64_t)count);
        topic->until_ns =
            scheduler_now_ns() + kafka_number(client, "sticky.partitioning.linger.ms") * 1000000u;
    }
    return topic->partition % count;
}

static int32_t choose(rd_kafka_t *client, const struct sent *sent, int32_t count) {
    rd_kafka_topic_t *topic = kafka_topic(client, sent->topic);
    if (client->choose_partition == NULL)
        return choose_by_default(client, topic, &sent->record, count);
    return client->choose_partition(
        topic, sent->record.key, sent->record.key_size, count, client->topic_opaque, sent->context);
}

/* ---- sending ---- */

static void list_headers(struct sent *sent) {
    size_t count = sent->headers != NULL ? rd_kafka_header_cnt(sent->headers) : 0;
    if (count > HEADERS_MAX) abort();
    for (size_t i = 0; i < count; i++) {
        struct log_header *header = &sent->log_headers[i];
        (void)rd_kafka_header_get_all(
            sent->headers, i, &header->name, &header->value, &header->size);
    }
    sent->record.header_count = count;
    sent->record.headers = sent->log_headers;
}

static void take_part(rd_kafka_vu_t part, struct sent *sent) {
    switch (part.vtype) {
    case RD_KAFKA_VTYPE_TOPIC: snprintf(sent->topic, sizeof sent->topic, "%s", part.u.cstr); break;
    case RD_KAFKA_VTYPE_VALUE:
        sent->record.payload = part.u.mem.ptr;
        sent->record.payload_size = part.u.mem.size;
        break;
    case RD_KAFKA_VTYPE_KEY:
        sent->record.has_key = part.u.mem.ptr != NULL;
        sent->record.key = part.u.mem.ptr;
        sent->record.key_size = part.u.mem.size;
        break;
    case RD_KAFKA_VTYPE_OPAQUE: sent->context = part.u.ptr; break;
    case RD_KAFKA_VTYPE_HEADERS: sent->headers = part.u.headers; break;
    default: abort();
    }
}

static size_t size_of(const struct sent *sent) {
    return sent->record.payload_size + sent->record.key_size;
}

/* What the library refuses itself. */
static rd_kafka_resp_err_t check(rd_kafka_t *client, const struct sent *sent) {
    if (client->id != NULL && client->phase != PHASE_BEGUN) return RD_KAFKA_RESP_ERR__STATE;
    if (size_of(sent) > client->record_bytes_max) return RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    if (client->sent_count >= client->sent_max) return RD_KAFKA_RESP_ERR__QUEUE_FULL;
    rd_kafka_topic_t *topic = kafka_topic(client, sent->topic);
    topic->is_missing = topic->is_missing && cluster_find_topic(sent->topic) == NULL;
    return topic->is_missing ? RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC : RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_error_t *rd_kafka_produceva(rd_kafka_t *client, const rd_kafka_vu_t *parts, size_t count) {
    struct sent *sent = calloc(1, sizeof *sent);
    if (sent == NULL) abort();
    for (size_t i = 0; i < count; i++) take_part(parts[i], sent);
    rd_kafka_resp_err_t code = check(client, sent);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        free(sent);
        return kafka_error(code, false, false);
    }
    client->sent_count++;
    list_headers(sent);
    sent->partition = RD_KAFKA_PARTITION_UA;
    sent->since_ns = scheduler_now_ns();
    sent->due_ns = sent->since_ns + scheduler_draw(SEND_NS_MAX);
    struct sent **end = &client->first_sent;
    for (; *end != NULL; end = &(*end)->next)
        if (!(*end)->is_over && (*end)->due_ns > sent->due_ns)
            sent->due_ns = (*end)->due_ns; /* in their order */
    *end = sent;
    return NULL;
}

static void answer(struct sent *sent, rd_kafka_resp_err_t code) {
    sent->is_over = true;
    sent->code = code;
    sent->due_ns = scheduler_now_ns() + scheduler_draw(SEND_NS_MAX);
}

/* Some of those that wait for the partition of the first are its batch. */
static size_t gather(rd_kafka_t *client, const struct topic *topic, struct sent *first,
    struct sent *batch[static BATCH_MAX]) {
    size_t most = (size_t)1 << scheduler_draw(BATCH_BITS + 1), count = 0, bytes = 0;
    for (struct sent *sent = first; sent != NULL && count < most; sent = sent->next) {
        if (sent->is_over || strcmp(sent->topic, first->topic) != 0) continue;
        if (sent->partition < 0 || sent->partition >= topic->partition_count)
            sent->partition = choose(client, sent, topic->partition_count);
        if (sent->partition != first->partition) continue;
        bytes += size_of(sent);
        if (count > 0 && bytes > client->record_bytes_max) break;
        batch[count++] = sent;
    }
    return count;
}

static rd_kafka_resp_err_t check_batch(
    const struct topic *topic, struct sent *const *batch, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += size_of(batch[i]);
    rd_kafka_resp_err_t refusal = cluster_refusal(REQUEST_PRODUCE);
    if (refusal != RD_KAFKA_RESP_ERR_NO_ERROR) return refusal;
    return bytes > topic->message_bytes_max ? RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE
                                            : RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void append(rd_kafka_t *client, struct sent *sent) {
    struct log *log = cluster_find_log(sent->topic, sent->partition);
    if (client->id != NULL) {
        sent->record.txn = producer_id_open(client->id);
        producer_id_touch(client->id, log);
    }
    sent->offset = cluster_append(log, &sent->record);
}

static void wait_for_topic(rd_kafka_t *client, struct sent *sent) {
    uint64_t now_ns = scheduler_now_ns();
    uint64_t longest_ns = kafka_number(client, "topic.metadata.propagation.max.ms") * 1000000u;
    sent->due_ns = now_ns + 100 * 1000000u;
    if (now_ns - sent->since_ns < longest_ns) return;
    kafka_topic(client, sent->topic)->is_missing = true;
    answer(sent, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
}

/* The partition is to be part of the transaction first. False: it may not, and the library does not
 * send what goes there, nor say why before the next call. */
static bool join_transaction(rd_kafka_t *client, struct sent *sent) {
    if (client->id == NULL) return true;
    rd_kafka_resp_err_t code = cluster_refusal(REQUEST_ADD_PARTITIONS_TO_TXN);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    client->phase = PHASE_FAILED;
    client->refusal = code;
    answer(sent, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
    return false;
}

/* At the broker, with its batch. */
static void arrive(rd_kafka_t *client, struct sent *sent) {
    struct sent *batch[BATCH_MAX];
    struct topic *topic = cluster_find_topic(sent->topic);
    if (topic == NULL) {
        wait_for_topic(client, sent);
        return;
    }
    if (client->id != NULL && producer_id_is_fenced(client->id, client->epoch)) {
        client->fatal = RD_KAFKA_RESP_ERR__FENCED;
        client->phase = PHASE_FATAL;
        answer(sent, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
        return;
    }
    if (!join_transaction(client, sent)) return;
    size_t count = gather(client, topic, sent, batch);
    rd_kafka_resp_err_t code = check_batch(topic, batch, count);
    for (size_t i = 0; i < count; i++) {
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) append(client, batch[i]);
        answer(batch[i], code);
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || client->id == NULL) return;
    client->phase = PHASE_FAILED;
    client->refusal = code;
}

static void report(rd_kafka_t *client, struct sent *sent) {
    rd_kafka_event_t *event = calloc(1, sizeof *event);
    struct message *message = calloc(1, sizeof *message);
    if (event == NULL || message == NULL) abort();
    message->seen = (rd_kafka_message_t){.err = sent->code,
        .rkt = kafka_topic(client, sent->topic),
        .partition = sent->partition,
        .offset = sent->offset,
        ._private = sent->context};
    *event = (rd_kafka_event_t){.kind = EVENT_REPORTS, .reports = message, .next_report = message};
    kafka_queue_add(client->main_queue, event);
    if (sent->headers != NULL) rd_kafka_headers_destroy(sent->headers);
    free(sent);
    client->sent_count--;
}

uint64_t kafka_producer_serve(rd_kafka_t *client) {
    bool is_up = !kafka_is_down(client);
    uint64_t next_ns = UINT64_MAX, up_ns = kafka_down_until_ns(client);
    kafka_tell_outage(client);
    producer_ids_serve();
    for (struct sent **at = &client->first_sent; *at != NULL;) {
        struct sent *sent = *at;
        bool is_due = sent->due_ns <= scheduler_now_ns() && (is_up || sent->is_purged);
        if (is_due && sent->is_over) {
            *at = sent->next;
            report(client, sent);
            continue;
        }
        if (is_due) arrive(client, sent);
        uint64_t at_ns = sent->due_ns > up_ns || sent->is_purged ? sent->due_ns : up_ns;
        if (at_ns < next_ns) next_ns = at_ns;
        at = &sent->next;
    }
    return next_ns;
}

rd_kafka_resp_err_t rd_kafka_purge(rd_kafka_t *client, int flags) {
    for (struct sent *sent = client->first_sent; sent != NULL; sent = sent->next) {
        bool is_asked = sent->is_over ? (flags & RD_KAFKA_PURGE_F_INFLIGHT) != 0
                                      : (flags & RD_KAFKA_PURGE_F_QUEUE) != 0;
        if (!is_asked) continue;
        sent->code =
            sent->is_over ? RD_KAFKA_RESP_ERR__PURGE_INFLIGHT : RD_KAFKA_RESP_ERR__PURGE_QUEUE;
        sent->is_over = sent->is_purged = true;
        sent->due_ns = 0;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void kafka_producer_fini(rd_kafka_t *client) {
    (void)rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    while (client->first_sent != NULL) {
        struct sent *sent = client->first_sent;
        client->first_sent = sent->next;
        report(client, sent);
    }
}

/* ---- transactions ---- */

static bool is_transactional(const rd_kafka_t *client, char id[static KAFKA_ID_SIZE]) {
    kafka_text(client, "transactional.id", id, KAFKA_ID_SIZE);
    return id[0] != 0;
}

rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *client, int timeout_ms) {
    char id[KAFKA_ID_SIZE];
    if (!is_transactional(client, id)) return kafka_error(RD_KAFKA_RESP_ERR__STATE, false, false);
    if (!kafka_reach(client, kafka_until_ns(timeout_ms)))
        return kafka_error(RD_KAFKA_RESP_ERR__TIMED_OUT, true, false);
    client->id = producer_id_take(
        id, (uint32_t)kafka_number(client, "transaction.timeout.ms"), &client->epoch);
    client->phase = PHASE_READY;
    kafka_pass_time();
    return NULL;
}

rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *client) {
    if (client->phase == PHASE_FATAL) return kafka_error(RD_KAFKA_RESP_ERR__FATAL, false, false);
    if (client->phase != PHASE_READY)
        return kafka_error(client->phase == PHASE_FAILED && client->refusal != 0
                               ? client->refusal
                               : RD_KAFKA_RESP_ERR__STATE,
            false, client->phase == PHASE_FAILED);
    client->phase = PHASE_BEGUN;
    client->refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
    return NULL;
}

static rd_kafka_error_t *be_fenced(rd_kafka_t *client) {
    client->fatal = RD_KAFKA_RESP_ERR__FENCED;
    client->phase = PHASE_FATAL;
    return kafka_error(RD_KAFKA_RESP_ERR__FENCED, false, false);
}

static rd_kafka_error_t *end(rd_kafka_t *client, enum txn_state state, int timeout_ms) {
    if (client->phase == PHASE_FATAL || !kafka_reach(client, kafka_until_ns(timeout_ms)))
        return client->phase == PHASE_FATAL
                   ? kafka_error(RD_KAFKA_RESP_ERR__FATAL, false, false)
                   : kafka_error(RD_KAFKA_RESP_ERR__TIMED_OUT, true, false);
    if (producer_id_is_fenced(client->id, client->epoch) ||
        kafka_refusal(REQUEST_END_TXN) == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH)
        return be_fenced(client);
    bool is_lost = state == TXN_COMMITTED && producer_id_loses_answer(client->id);
    bool is_taken = !is_lost || scheduler_draw(2) == 0;
    if (is_taken) producer_id_end(client->id, state);
    kafka_pass_time();
    if (is_lost) return be_fenced(client);
    client->phase = PHASE_READY;
    return NULL;
}

rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *client, int timeout_ms) {
    if (client->phase == PHASE_FAILED) return kafka_error(client->refusal, false, true);
    return end(client, TXN_COMMITTED, timeout_ms);
}

rd_kafka_error_t *rd_kafka_abort_transaction(rd_kafka_t *client, int timeout_ms) {
    return end(client, TXN_ABORTED, timeout_ms);
}

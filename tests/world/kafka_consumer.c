/* Consumers: what they read, and the offsets that they commit (kafka.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/kafka.h"
#include "world/leaks.h"
#include "world/scheduler.h"

enum { FIND_NS_MAX = 1000000000, TRY_AGAIN_NS = 1000000000 };

/* ---- what is read ---- */

static struct reading *find(rd_kafka_t *client, const char *topic, int32_t partition) {
    for (size_t i = 0; i < client->reading_count; i++)
        if (client->readings[i].partition == partition &&
            strcmp(client->readings[i].topic, topic) == 0)
            return &client->readings[i];
    return NULL;
}

static bool is_of(const struct message *message, const struct reading *reading) {
    return message->seen.rkt != NULL && message->seen.partition == reading->partition &&
           strcmp(rd_kafka_topic_name(message->seen.rkt), reading->topic) == 0;
}

/* What was fetched of it, and not taken. */
static void drop_fetched(rd_kafka_t *client, const struct reading *reading) {
    struct message **at = &client->first;
    client->last = NULL;
    while (*at != NULL) {
        struct message *message = *at;
        if (is_of(message, reading)) {
            *at = message->next;
            rd_kafka_message_destroy(&message->seen);
        } else {
            client->last = message;
            at = &message->next;
        }
    }
}

static void read_from(rd_kafka_t *client, struct reading *reading, int64_t offset) {
    drop_fetched(client, reading);
    const struct log *log = cluster_find_log(reading->topic, reading->partition);
    reading->next = offset;
    if (offset == RD_KAFKA_OFFSET_END) reading->next = log != NULL ? log->end : 0;
    else if (offset < 0 && offset != RD_KAFKA_OFFSET_INVALID)
        reading->next = log != NULL ? log->low : 0;
    reading->told_end = NO_OFFSET;
}

bool kafka_reads(rd_kafka_t *client, const rd_kafka_topic_partition_t *p) {
    return find(client, p->topic, p->partition) != NULL;
}

void kafka_read(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        struct reading *reading = &client->readings[client->reading_count++];
        *reading = (struct reading){.partition = partitions->elems[i].partition,
            .consumed = NO_OFFSET,
            .low = NO_OFFSET,
            .end = NO_OFFSET};
        snprintf(reading->topic, sizeof reading->topic, "%s", partitions->elems[i].topic);
        read_from(client, reading, partitions->elems[i].offset);
    }
}

/* The message is fetched again. */
static void rewind_reading(rd_kafka_t *client, struct reading *reading) {
    drop_fetched(client, reading);
    if (reading->consumed != NO_OFFSET) reading->next = reading->consumed;
    reading->told_end = NO_OFFSET;
}

void kafka_rewind(rd_kafka_t *client) {
    for (size_t i = 0; i < client->reading_count; i++) rewind_reading(client, &client->readings[i]);
}

void kafka_forget(rd_kafka_t *client, const rd_kafka_topic_partition_t *p) {
    struct reading *reading = find(client, p->topic, p->partition);
    drop_fetched(client, reading);
    *reading = client->readings[--client->reading_count];
}

void kafka_forget_all(rd_kafka_t *client) {
    for (size_t i = 0; i < client->reading_count; i++) drop_fetched(client, &client->readings[i]);
    client->reading_count = 0;
}

rd_kafka_resp_err_t rd_kafka_assignment(rd_kafka_t *client, rd_kafka_topic_partition_list_t **ret) {
    *ret = rd_kafka_topic_partition_list_new((int)client->reading_count);
    for (size_t i = 0; i < client->reading_count; i++)
        rd_kafka_topic_partition_list_add(
            *ret, client->readings[i].topic, client->readings[i].partition);
    (void)leaks_note(*ret, __builtin_return_address(0));
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t set_paused(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, bool is_paused) {
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        struct reading *reading = find(client, p->topic, p->partition);
        p->err =
            reading != NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
        if (reading == NULL || reading->is_paused == is_paused) continue;
        reading->is_paused = is_paused;
        rewind_reading(client, reading);
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_pause_partitions(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions) {
    return set_paused(client, partitions, true);
}

rd_kafka_resp_err_t rd_kafka_resume_partitions(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions) {
    return set_paused(client, partitions, false);
}

rd_kafka_error_t *rd_kafka_seek_partitions(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        struct reading *reading = find(client, p->topic, p->partition);
        p->err = reading != NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__STATE;
        if (reading == NULL) continue;
        read_from(client, reading, p->offset);
        reading->consumed = reading->next;
    }
    return NULL;
}

rd_kafka_resp_err_t rd_kafka_position(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        const struct reading *reading = find(client, p->topic, p->partition);
        p->offset = reading != NULL ? reading->consumed : RD_KAFKA_OFFSET_INVALID;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* ---- fetching ---- */

/* `topic` NULL: it is about the client. */
static struct message *add_message(rd_kafka_t *client, const char *topic, int32_t partition,
    int64_t offset, rd_kafka_resp_err_t code) {
    struct message *message = calloc(1, sizeof *message);
    if (message == NULL) abort();
    message->seen = (rd_kafka_message_t){.err = code,
        .rkt = topic != NULL ? kafka_topic(client, topic) : NULL,
        .partition = partition,
        .offset = offset};
    if (client->last != NULL) client->last->next = message;
    else client->first = message;
    client->last = message;
    return message;
}

void kafka_tell_error(rd_kafka_t *client, rd_kafka_resp_err_t code) {
    add_message(client, NULL, RD_KAFKA_PARTITION_UA, RD_KAFKA_OFFSET_INVALID, code);
}

static struct message *new_message(
    rd_kafka_t *client, const struct reading *reading, int64_t offset, rd_kafka_resp_err_t code) {
    return add_message(client, reading->topic, reading->partition, offset, code);
}

/* With the words that librdkafka tells it with. */
void kafka_tell_missing(rd_kafka_t *client, const char *topic) {
    const rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    struct message *message =
        add_message(client, topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_OFFSET_INVALID, code);
    if (asprintf(&message->reason, "Subscribed topic not available: %s: %s", topic,
            rd_kafka_err2str(code)) < 0)
        abort();
}

/* A place that the log does not have, or none. With the words that librdkafka logs it with. */
static void reset(rd_kafka_t *client, struct reading *reading, const struct log *log) {
    char text[512], policy[32];
    kafka_text(client, "auto.offset.reset", policy, sizeof policy);
    bool is_end = strcmp(policy, "largest") == 0 || strcmp(policy, "latest") == 0;
    if (strcmp(policy, "error") == 0) {
        reading->is_over = true;
        new_message(client, reading, reading->next, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
        return;
    }
    snprintf(text, sizeof text,
        "[thrd:main]: %s [%" PRId32 "]: offset reset (at offset %" PRId64
        ", broker 1) to %s: Broker: Offset out of range",
        reading->topic, reading->partition, reading->next, is_end ? "END" : "BEGINNING");
    reading->next = is_end ? log->end : log->low;
    reading->told_end = NO_OFFSET;
    if (client->on_log != NULL && !client->has_log_queue) client->on_log(client, 4, "OFFSET", text);
}

/* The library asks now and then whether a partition that was gone is there again, so senders may
 * have been there first. */
static struct log *find_again(struct reading *reading) {
    struct log *log = cluster_find_log(reading->topic, reading->partition);
    if (log != NULL && reading->is_missing)
        reading->next_ns = scheduler_now_ns() + scheduler_draw(FIND_NS_MAX);
    reading->is_missing = log == NULL;
    return reading->next_ns <= scheduler_now_ns() ? log : NULL;
}

static void fetch_from(rd_kafka_t *client, struct reading *reading) {
    const struct log *log = find_again(reading);
    if (log == NULL || reading->is_paused || reading->is_over) return;
    if (reading->next < log->low || reading->next > log->end) reset(client, reading, log);
    if (reading->is_over) return;
    int64_t end = cluster_stable_end(log), most = 1 + (int64_t)scheduler_draw(KAFKA_FETCH_MAX);
    reading->low = log->low;
    reading->end = end;
    for (; reading->next < end && most > 0; reading->next++) {
        const struct log_record *record = log->records[reading->next];
        if (!cluster_is_visible(record)) continue;
        struct message *message =
            new_message(client, reading, reading->next, RD_KAFKA_RESP_ERR_NO_ERROR);
        message->record = record;
        message->seen.payload = (void *)(uintptr_t)record->payload;
        message->seen.len = record->payload_size;
        message->seen.key = record->has_key ? (void *)(uintptr_t)record->key : NULL;
        message->seen.key_len = record->key_size;
        most--;
    }
    if (reading->next < end || reading->told_end == end) return;
    reading->told_end = end;
    new_message(client, reading, end, RD_KAFKA_RESP_ERR__PARTITION_EOF);
}

static void fetch(rd_kafka_t *client) {
    bool is_stopped = client->is_cooperative && client->awaits != AWAITS_NOTHING;
    if (client->reading_count == 0 || is_stopped || kafka_is_down(client)) return;
    size_t first = scheduler_draw(client->reading_count);
    for (size_t i = 0; i < client->reading_count && client->first == NULL; i++)
        fetch_from(client, &client->readings[(first + i) % client->reading_count]);
}

/* When a partition may be fetched from again that may not yet; UINT64_MAX: there is none. */
static uint64_t next_fetch_ns(const rd_kafka_t *client) {
    uint64_t ret = UINT64_MAX;
    for (size_t i = 0; i < client->reading_count; i++) {
        uint64_t next_ns = client->readings[i].next_ns;
        if (next_ns > scheduler_now_ns() && next_ns < ret) ret = next_ns;
    }
    return ret;
}

static struct message *take_fetched(rd_kafka_t *client) {
    if (client->first == NULL) fetch(client);
    struct message *message = client->first;
    if (message == NULL) return NULL;
    client->first = message->next;
    if (client->first == NULL) client->last = NULL;
    message->next = NULL;
    if (message->record != NULL)
        find(client, rd_kafka_topic_name(message->seen.rkt), message->seen.partition)->consumed =
            message->seen.offset + 1;
    return message;
}

rd_kafka_resp_err_t rd_kafka_poll_set_consumer(rd_kafka_t *client) {
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_message_t *lend(rd_kafka_t *client, struct message *message) {
    message->lender = client;
    client->lent_count++;
    return &message->seen;
}

rd_kafka_message_t *rd_kafka_consumer_poll(rd_kafka_t *client, int timeout_ms) {
    uint64_t until_ns = kafka_until_ns(timeout_ms);
    scheduler_maybe_yield();
    for (;;) {
        kafka_tell_outage(client);
        if (client->member != NULL) group_polled(client->member);
        kafka_consumer_serve(client);
        struct message *message = take_fetched(client);
        if (message != NULL) return lend(client, message);
        bool is_yielded = client->is_yielded;
        client->is_yielded = false;
        if (is_yielded || scheduler_now_ns() >= until_ns) return NULL;
        uint64_t next_ns = next_fetch_ns(client);
        (void)scheduler_wait(cluster_key(), next_ns < until_ns ? next_ns : until_ns);
    }
}

rd_kafka_error_t *rd_kafka_consumer_close_queue(rd_kafka_t *client, rd_kafka_queue_t *queue) {
    client->closing_queue = queue;
    leaks_forget(client); /* whoever cannot wait for its end may leave it */
    return NULL;
}

/* Of one that is in no group. */
rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *client) {
    kafka_forget_all(client);
    client->is_closed = true;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

int rd_kafka_consumer_closed(rd_kafka_t *client) {
    return client->is_closed;
}

void kafka_consumer_fini(rd_kafka_t *client, bool leaves) {
    kafka_forget_all(client);
    kafka_member_end(client, leaves);
    while (client->first != NULL) rd_kafka_message_destroy(&take_fetched(client)->seen);
}

/* ---- offsets ---- */

rd_kafka_resp_err_t rd_kafka_committed(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    char isolation[64];
    kafka_text(client, "isolation.level", isolation, sizeof isolation);
    bool is_stable = strcmp(isolation, "read_committed") == 0, is_pending = false;
    uint64_t until_ns = kafka_until_ns(timeout_ms);
    do {
        if (is_pending) (void)scheduler_wait(cluster_key(), until_ns);
        if (!kafka_reach(client, until_ns)) return RD_KAFKA_RESP_ERR__TIMED_OUT;
        rd_kafka_resp_err_t refusal = kafka_refusal(REQUEST_OFFSET_FETCH);
        if (refusal != RD_KAFKA_RESP_ERR_NO_ERROR) return refusal;
        group_use(client->group);
        group_fetch(partitions, is_stable);
        is_pending = false;
        for (int i = 0; i < partitions->cnt; i++)
            is_pending = is_pending || partitions->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR;
    } while (is_pending && scheduler_now_ns() < until_ns);
    kafka_pass_time();
    return is_pending ? RD_KAFKA_RESP_ERR__TIMED_OUT : RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t kafka_commit(
    rd_kafka_t *client, int32_t generation, rd_kafka_topic_partition_list_t *partitions) {
    char instance[KAFKA_ID_SIZE];
    kafka_text(client, "group.instance.id", instance, sizeof instance);
    const char *id = client->member != NULL ? group_member_id(client->member) : "";
    rd_kafka_resp_err_t code = kafka_refusal(REQUEST_OFFSET_COMMIT);
    group_use(client->group);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = group_check(id, instance, generation, false);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = group_commit(partitions, NULL);
    kafka_pass_time();
    return code;
}

rd_kafka_resp_err_t rd_kafka_commit(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions, int async) {
    if (!kafka_reach(client, UINT64_MAX)) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_topic_partition_list_t *copy = rd_kafka_topic_partition_list_copy(partitions);
    rd_kafka_resp_err_t code = kafka_commit(client, client->generation, copy);
    rd_kafka_topic_partition_list_destroy(copy);
    return code;
}

/* The question is sent and answered when the queue is polled (kafka_client.c). */
rd_kafka_resp_err_t rd_kafka_commit_queue(rd_kafka_t *client,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_queue_t *queue,
    void (*on_commit)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *),
    void *context) {
    rd_kafka_event_t *event = calloc(1, sizeof *event);
    if (event == NULL) abort();
    *event = (rd_kafka_event_t){.kind = EVENT_COMMIT,
        .code = (rd_kafka_resp_err_t)client->generation,
        .due_ns = scheduler_now_ns() + scheduler_draw(2000000),
        .partitions = rd_kafka_topic_partition_list_copy(partitions),
        .on_commit = on_commit,
        .context = context};
    kafka_queue_add(queue, event);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The first record that is as new. */
static int64_t find_time(const struct log *log, int64_t time_ms) {
    for (int64_t offset = log->low; offset < log->end; offset++)
        if (log->records[offset]->time_ms >= time_ms) return offset;
    return RD_KAFKA_OFFSET_END;
}

rd_kafka_resp_err_t rd_kafka_offsets_for_times(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    if (!kafka_reach(client, kafka_until_ns(timeout_ms))) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        const struct log *log = cluster_find_log(p->topic, p->partition);
        p->err = log != NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
        if (log == NULL) continue;
        if (p->offset == RD_KAFKA_OFFSET_BEGINNING) p->offset = log->low;
        else if (p->offset == RD_KAFKA_OFFSET_END) p->offset = cluster_stable_end(log);
        else p->offset = find_time(log, p->offset);
    }
    kafka_pass_time();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t *client, const char *topic,
    int32_t partition, int64_t *low, int64_t *high, int timeout_ms) {
    if (!kafka_reach(client, kafka_until_ns(timeout_ms))) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    const struct log *log = cluster_find_log(topic, partition);
    if (log == NULL) return RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    *low = log->low;
    *high = cluster_stable_end(log);
    kafka_pass_time();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_get_watermark_offsets(
    rd_kafka_t *client, const char *topic, int32_t partition, int64_t *low, int64_t *high) {
    const struct reading *reading = find(client, topic, partition);
    if (reading == NULL) return RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    *low = reading->low;
    *high = reading->end;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* ---- what a transaction is told of the group ---- */

struct rd_kafka_consumer_group_metadata_s {
    char group[KAFKA_ID_SIZE], member[KAFKA_ID_SIZE], instance[KAFKA_ID_SIZE];
    int32_t generation;
};

rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata_new_with_genid(
    const char *group, int32_t generation, const char *member, const char *instance) {
    rd_kafka_consumer_group_metadata_t *metadata = calloc(1, sizeof *metadata);
    if (metadata == NULL) abort();
    metadata->generation = generation;
    snprintf(metadata->group, KAFKA_ID_SIZE, "%s", group);
    snprintf(metadata->member, KAFKA_ID_SIZE, "%s", member);
    snprintf(metadata->instance, KAFKA_ID_SIZE, "%s", instance != NULL ? instance : "");
    return metadata;
}

rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata(rd_kafka_t *client) {
    char group[KAFKA_ID_SIZE], instance[KAFKA_ID_SIZE];
    kafka_text(client, "group.id", group, sizeof group);
    kafka_text(client, "group.instance.id", instance, sizeof instance);
    return rd_kafka_consumer_group_metadata_new_with_genid(group, client->generation,
        client->member != NULL ? group_member_id(client->member) : "", instance);
}

rd_kafka_error_t *rd_kafka_consumer_group_metadata_write(
    const rd_kafka_consumer_group_metadata_t *metadata, void **ret, size_t *size) {
    *size = sizeof *metadata;
    *ret = malloc(*size);
    if (*ret == NULL) abort();
    memcpy(*ret, metadata, *size);
    return NULL;
}

void rd_kafka_consumer_group_metadata_destroy(rd_kafka_consumer_group_metadata_t *metadata) {
    free(metadata);
}

/* librdkafka repeats TxnOffsetCommit once a second while a topic is not there. False: it was not.
 */
static bool await_topics(const rd_kafka_topic_partition_list_t *partitions, uint64_t until_ns) {
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        while (cluster_find_log(p->topic, p->partition) == NULL) {
            if (scheduler_now_ns() + TRY_AGAIN_NS > until_ns) return false;
            scheduler_sleep_ns(TRY_AGAIN_NS);
        }
    }
    return true;
}

/* As the coordinator does with TxnOffsetCommit, and AddOffsetsToTxn before. */
rd_kafka_error_t *rd_kafka_send_offsets_to_transaction(rd_kafka_t *client,
    const rd_kafka_topic_partition_list_t *partitions,
    const rd_kafka_consumer_group_metadata_t *metadata, int timeout_ms) {
    uint64_t until_ns = kafka_until_ns(timeout_ms);
    if (!kafka_reach(client, until_ns))
        return kafka_error(RD_KAFKA_RESP_ERR__TIMED_OUT, true, false);
    bool are_there = await_topics(partitions, until_ns);
    if (producer_id_is_fenced(client->id, client->epoch)) {
        client->fatal = RD_KAFKA_RESP_ERR__FENCED;
        client->phase = PHASE_FATAL;
        return kafka_error(RD_KAFKA_RESP_ERR__FENCED, false, false);
    }
    rd_kafka_resp_err_t code = are_there ? kafka_refusal(REQUEST_TXN_OFFSET_COMMIT)
                                         : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    group_use(metadata->group);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = group_check(metadata->member, metadata->instance, metadata->generation, true);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_topic_partition_list_t *copy = rd_kafka_topic_partition_list_copy(partitions);
        (void)group_commit(copy, producer_id_open(client->id));
        rd_kafka_topic_partition_list_destroy(copy);
    }
    kafka_pass_time();
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return NULL;
    client->phase = PHASE_FAILED;
    client->refusal = code;
    return kafka_error(code, false, true);
}

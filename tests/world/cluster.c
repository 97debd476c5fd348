#include "world/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "world/scheduler.h"

enum { REFUSALS = 8, LOST_ODDS = 8 };

struct cluster {
    struct topic topics[CLUSTER_TOPICS];
    size_t topic_count;
    bool hides_ids, loses_answers, is_shut;
    uint64_t last_topic_id, down_until_ns, outage_count;
    struct refusal {
        enum request request;
        rd_kafka_resp_err_t code;
        int left;
    } refusals[REFUSALS];
    struct producer_id *producers[CLUSTER_PRODUCERS];
    size_t producer_count;
};

static struct cluster *cluster; /* in the region, at one address in all processes */

void cluster_begin(void) {
    cluster = scheduler_alloc(sizeof *cluster);
}

const void *cluster_key(void) {
    return cluster;
}

void cluster_changed(void) {
    scheduler_wake_all(cluster);
}

void cluster_go_down_until(uint64_t until_ns) {
    if (until_ns <= cluster->down_until_ns) return;
    if (cluster->down_until_ns <= scheduler_now_ns()) cluster->outage_count++;
    cluster->down_until_ns = until_ns;
    cluster_changed();
}

void cluster_come_up(void) {
    cluster->down_until_ns = 0;
    cluster->is_shut = false;
    cluster_changed();
}

void cluster_shut_out(void) {
    cluster->is_shut = true;
    cluster_go_down_until(UINT64_MAX);
}

bool cluster_is_shut(void) {
    return cluster->is_shut;
}

uint64_t cluster_outage_count(void) {
    return cluster->outage_count;
}

void cluster_refuse(enum request request, rd_kafka_resp_err_t code, int count) {
    size_t i = 0;
    while (cluster->refusals[i].left > 0 && cluster->refusals[i].request != request) i++;
    cluster->refusals[i] = (struct refusal){request, code, count};
}

rd_kafka_resp_err_t cluster_refusal(enum request request) {
    for (size_t i = 0; i < REFUSALS; i++)
        if (cluster->refusals[i].left > 0 && cluster->refusals[i].request == request) {
            cluster->refusals[i].left--;
            return cluster->refusals[i].code;
        }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

uint64_t cluster_down_until_ns(void) {
    return cluster->down_until_ns;
}

/* ---- topics ---- */

static struct topic *find(const char *name) {
    for (size_t i = 0; i < cluster->topic_count; i++)
        if (strcmp(cluster->topics[i].name, name) == 0) return &cluster->topics[i];
    return NULL;
}

struct topic *cluster_find_topic(const char *name) {
    struct topic *topic = find(name);
    return topic != NULL && topic->exists ? topic : NULL;
}

struct topic *cluster_make_topic(const char *name, int32_t partition_count) {
    struct topic *topic = find(name);
    if (topic == NULL) topic = &cluster->topics[cluster->topic_count++];
    *topic = (struct topic){.id = ++cluster->last_topic_id,
        .made_ns = scheduler_now_ns(),
        .exists = true,
        .partition_count = partition_count,
        .message_bytes_max = 1048588};
    strncpy(topic->name, name, sizeof topic->name - 1);
    cluster_changed();
    return topic;
}

void cluster_add_partitions(const char *name, int32_t partition_count) {
    struct topic *topic = cluster_find_topic(name);
    if (topic != NULL && partition_count > topic->partition_count)
        topic->partition_count = partition_count;
    cluster_changed();
}

struct log *cluster_find_log(const char *name, int32_t partition) {
    struct topic *topic = cluster_find_topic(name);
    bool is_there = topic != NULL && partition >= 0 && partition < topic->partition_count;
    return is_there ? &topic->logs[partition] : NULL;
}

void cluster_tell_id(const struct topic *topic, char *ret, size_t size) {
    if (cluster->hides_ids) snprintf(ret, size, "AAAAAAAAAAAAAAAAAAAAAA");
    else snprintf(ret, size, "topic-%llu", (unsigned long long)topic->id);
}

void cluster_hide_ids(void) {
    cluster->hides_ids = true;
}

/* ---- logs ---- */

static const void *keep(const void *bytes, size_t size) {
    void *kept = scheduler_alloc(size + 1); /* a byte, so that none has an address, too */
    if (size > 0) memcpy(kept, bytes, size);
    return kept;
}

static struct log_record *keep_record(const struct log_record *record) {
    struct log_record *kept = scheduler_alloc(sizeof *kept);
    *kept = *record;
    kept->time_ms = (int64_t)clock_unix_ms();
    if (record->has_key) kept->key = keep(record->key, record->key_size);
    kept->payload = keep(record->payload, record->payload_size);
    kept->headers = scheduler_alloc(record->header_count * sizeof kept->headers[0] + 1);
    for (size_t i = 0; i < record->header_count; i++) {
        const struct log_header *header = &record->headers[i];
        kept->headers[i] = (struct log_header){.name = keep(header->name, strlen(header->name) + 1),
            .value = header->value != NULL ? keep(header->value, header->size) : NULL,
            .size = header->size};
    }
    return kept;
}

int64_t cluster_append(struct log *log, const struct log_record *record) {
    if ((size_t)log->end == log->room) {
        size_t room = log->room > 0 ? 2 * log->room : 64;
        struct log_record **records = scheduler_alloc(room * sizeof records[0]);
        if (log->room > 0) memcpy(records, log->records, log->room * sizeof records[0]);
        log->records = records;
        log->room = room;
    }
    log->records[log->end] = keep_record(record);
    cluster_changed();
    return log->end++;
}

bool cluster_is_visible(const struct log_record *record) {
    return !record->is_marker && (record->txn == NULL || record->txn->state == TXN_COMMITTED);
}

int64_t cluster_stable_end(const struct log *log) {
    for (int64_t offset = log->low; offset < log->end; offset++) {
        const struct log_record *record = log->records[offset];
        if (record->txn != NULL && record->txn->state == TXN_OPEN) return offset;
    }
    return log->end;
}

void cluster_truncate(struct log *log, int64_t end) {
    if (end >= log->low && end < log->end) log->end = end;
    cluster_changed();
}

/* ---- producers with a transactional id ---- */

struct producer_id {
    char name[CLUSTER_NAME_SIZE];
    int16_t epoch;
    bool has_lost; /* the answer to its last commit */
    uint32_t timeout_ms;
    struct txn *txn; /* NULL: none is open */
    struct log *touched[CLUSTER_TOPICS * CLUSTER_PARTITIONS];
    size_t touched_count;
};

struct txn *producer_id_open(struct producer_id *id) {
    if (id->txn == NULL) {
        id->txn = scheduler_alloc(sizeof *id->txn);
        id->txn->state = TXN_OPEN;
        id->txn->began_ns = scheduler_now_ns();
    }
    return id->txn;
}

void producer_id_touch(struct producer_id *id, struct log *log) {
    for (size_t i = 0; i < id->touched_count; i++)
        if (id->touched[i] == log) return;
    id->touched[id->touched_count++] = log;
}

void producer_id_end(struct producer_id *id, enum txn_state state) {
    const struct log_record marker = {.is_marker = true};
    if (id->txn == NULL) return;
    id->txn->state = state;
    id->txn = NULL;
    for (size_t i = 0; i < id->touched_count; i++) cluster_append(id->touched[i], &marker);
    id->touched_count = 0;
    cluster_changed();
}

struct producer_id *producer_id_take(const char *name, uint32_t timeout_ms, int16_t *epoch) {
    struct producer_id *id = NULL;
    for (size_t i = 0; i < cluster->producer_count && id == NULL; i++)
        if (strcmp(cluster->producers[i]->name, name) == 0) id = cluster->producers[i];
    if (id == NULL) {
        id = cluster->producers[cluster->producer_count++] = scheduler_alloc(sizeof *id);
        strncpy(id->name, name, sizeof id->name - 1);
    }
    producer_id_end(id, TXN_ABORTED);
    id->timeout_ms = timeout_ms;
    *epoch = ++id->epoch;
    return id;
}

bool producer_id_is_fenced(const struct producer_id *id, int16_t epoch) {
    return id->epoch != epoch;
}

void producer_ids_lose_answers(void) {
    cluster->loses_answers = true;
}

bool producer_id_loses_answer(struct producer_id *id) {
    id->has_lost = cluster->loses_answers && !id->has_lost && scheduler_draw(LOST_ODDS) == 0;
    return id->has_lost;
}

void producer_ids_serve(void) {
    for (size_t i = 0; i < cluster->producer_count; i++) {
        struct producer_id *id = cluster->producers[i];
        if (id->txn == NULL || scheduler_now_ns() - id->txn->began_ns < id->timeout_ms * 1000000ull)
            continue;
        producer_id_end(id, TXN_ABORTED);
        id->epoch++;
    }
}

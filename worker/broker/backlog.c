#include "broker/backlog.h"

#include <pthread.h>
#include <stdlib.h>

enum { MARK_BYTES = BACKLOG_BYTES_MAX / (BACKLOG_MARKS / 2) };

/* Batches that are given back together, once all before `end` is committed. */
struct mark {
    int64_t end;
    uint64_t bytes;
};

struct partition {
    uint64_t bytes; /* of all marks, and of requests that are not answered yet */
    uint32_t first, count;
    struct mark marks[BACKLOG_MARKS]; /* a ring */
};

struct backlog {
    char **topics;
    size_t topic_count;
    uint32_t partition_count;
    pthread_mutex_t lock; /* guards what follows */
    struct partition partitions[];
};

static void free_names(char **names) {
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) free(names[i]);
    free(names);
}

struct backlog *backlog_create(char *const *topics, size_t topic_count, uint32_t partitions) {
    struct backlog *backlog =
        calloc(1, sizeof *backlog + topic_count * partitions * sizeof backlog->partitions[0]);
    char **names = calloc(topic_count + 1, sizeof names[0]);
    if (backlog == NULL || names == NULL) goto fail;
    for (size_t i = 0; i < topic_count; i++)
        if ((names[i] = strdup(topics[i])) == NULL) goto fail;
    backlog->topics = names;
    backlog->topic_count = topic_count;
    backlog->partition_count = partitions;
    pthread_mutex_init(&backlog->lock, NULL);
    return backlog;
fail:
    free_names(names);
    free(backlog);
    return NULL;
}

void backlog_destroy(struct backlog *backlog) {
    if (backlog == NULL) return;
    pthread_mutex_destroy(&backlog->lock);
    free_names(backlog->topics);
    free(backlog);
}

/* NULL: nobody has to read it. */
static struct partition *find(struct backlog *backlog, struct slice topic, int32_t partition) {
    if (partition < 0 || (uint32_t)partition >= backlog->partition_count) return NULL;
    for (size_t i = 0; i < backlog->topic_count; i++)
        if (slice_is_text(topic, backlog->topics[i]))
            return &backlog->partitions[i * backlog->partition_count + (uint32_t)partition];
    return NULL;
}

static enum backlog_answer take(struct partition *partition, uint32_t bytes) {
    if (bytes > BACKLOG_BATCH_MAX) return BACKLOG_TOO_LARGE;
    if (partition == NULL) return BACKLOG_ROOM;
    if (partition->bytes + bytes > BACKLOG_BYTES_MAX) return BACKLOG_FULL;
    partition->bytes += bytes;
    return BACKLOG_ROOM;
}

enum backlog_answer backlog_take_room(struct backlog *backlog, struct produce_entries request) {
    struct produce_entries again = request;
    struct produce_entry entry;
    struct partition *partition;
    enum produce_next next;
    enum backlog_answer ret = BACKLOG_ROOM;
    size_t taken = 0;
    pthread_mutex_lock(&backlog->lock);
    for (; (next = produce_next(&request, &entry)) == PRODUCE_ENTRY; taken++) {
        ret = take(find(backlog, entry.topic, entry.partition), entry.bytes);
        if (ret != BACKLOG_ROOM) break;
    }
    if (next == PRODUCE_BROKEN) ret = BACKLOG_BROKEN;
    for (; ret != BACKLOG_ROOM && taken > 0; taken--) {
        (void)produce_next(&again, &entry);
        partition = find(backlog, entry.topic, entry.partition);
        if (partition != NULL) partition->bytes -= entry.bytes;
    }
    pthread_mutex_unlock(&backlog->lock);
    return ret;
}

/* Small batches share a mark. Where all are in use, the last one takes any. */
static void add_mark(struct partition *partition, int64_t end, uint32_t bytes) {
    uint32_t last = (partition->first + partition->count - 1) % BACKLOG_MARKS;
    bool is_new = partition->count == 0 ||
                  (partition->marks[last].bytes >= MARK_BYTES && partition->count < BACKLOG_MARKS);
    if (is_new) {
        last = (partition->first + partition->count++) % BACKLOG_MARKS;
        partition->marks[last] = (struct mark){.end = end};
    }
    struct mark *mark = &partition->marks[last];
    mark->bytes += bytes;
    if (end > mark->end) mark->end = end;
}

void backlog_append(
    struct backlog *backlog, struct produce_entries request, struct produce_entries response) {
    struct produce_entry sent, answer;
    pthread_mutex_lock(&backlog->lock);
    while (produce_next(&request, &sent) == PRODUCE_ENTRY) {
        bool is_answered = produce_next(&response, &answer) == PRODUCE_ENTRY &&
                           slice_equal(answer.topic, sent.topic) &&
                           answer.partition == sent.partition;
        struct partition *partition = find(backlog, sent.topic, sent.partition);
        if (partition == NULL) continue;
        if (is_answered && answer.code == 0)
            add_mark(partition, answer.first_offset + sent.messages, sent.bytes);
        else partition->bytes -= sent.bytes;
    }
    pthread_mutex_unlock(&backlog->lock);
}

rd_kafka_topic_partition_list_t *backlog_list(struct backlog *backlog) {
    rd_kafka_topic_partition_list_t *ret = rd_kafka_topic_partition_list_new(1);
    pthread_mutex_lock(&backlog->lock);
    for (size_t i = 0; i < backlog->topic_count * backlog->partition_count; i++)
        if (backlog->partitions[i].count > 0)
            rd_kafka_topic_partition_list_add(ret, backlog->topics[i / backlog->partition_count],
                (int32_t)(i % backlog->partition_count));
    pthread_mutex_unlock(&backlog->lock);
    return ret;
}

static void drop_until(struct partition *partition, int64_t offset) {
    while (partition->count > 0 && partition->marks[partition->first].end <= offset) {
        partition->bytes -= partition->marks[partition->first].bytes;
        partition->first = (partition->first + 1) % BACKLOG_MARKS;
        partition->count--;
    }
}

void backlog_commit(struct backlog *backlog, const rd_kafka_topic_partition_list_t *committed) {
    pthread_mutex_lock(&backlog->lock);
    for (int i = 0; i < committed->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &committed->elems[i];
        struct partition *partition = find(backlog, slice_of_text(p->topic), p->partition);
        if (partition != NULL && p->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            drop_until(partition, p->offset);
    }
    pthread_mutex_unlock(&backlog->lock);
}

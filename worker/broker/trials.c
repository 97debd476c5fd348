#include "broker/trials.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/assignment.h"

enum {
    TRIAL_TIMEOUT_MS = 30000, /* a trial ends after this time without a message */
    END_TIMEOUT_MS = 500,     /* for asking where a partition ends */
    LOOK_MS = 1000,           /* how often it is checked whether one may be read again */
    GROWTH_BYTES = 32 << 20   /* beyond twice what was read: more than a response under way */
};

void trials_init(struct trials *trials, const struct source *source,
    const struct client_events *events, uint64_t bytes_max) {
    *trials = (struct trials){.source = source, .events = events, .bytes_max = bytes_max};
}

static void destroy_list(rd_kafka_topic_partition_list_t **list) {
    if (*list != NULL) rd_kafka_topic_partition_list_destroy(*list);
    *list = NULL;
}

void trials_drop(struct trials *trials) {
    destroy_list(&trials->waiting);
    destroy_list(&trials->current);
}

void trials_fini(struct trials *trials) {
    trials_drop(trials);
    destroy_list(&trials->aside);
}

static void add(rd_kafka_topic_partition_list_t **list, const rd_kafka_topic_partition_t *p) {
    if (*list == NULL) *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(*list, p->topic, p->partition)->offset = p->offset;
}

void trials_sort(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions) {
    trials_forget(trials, partitions);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        switch (source_ask_guard(trials->source, p->topic, p->partition, p->offset)) {
        case FETCH_READ: break;
        case FETCH_TRY: add(&trials->waiting, p); break;
        case FETCH_ASIDE:
            add(&trials->aside, p);
            client_say(trials->events, LOG_ERROR,
                "%s [%d] is set aside at offset %" PRId64
                ": executors died of reading it, so it is not read; run gpu-worker resume "
                "--partition %s/%d to read it again",
                p->topic, (int)p->partition, p->offset, p->topic, (int)p->partition);
        }
    }
}

/* An empty partition needs no trial. */
static bool is_empty(rd_kafka_t *client, const rd_kafka_topic_partition_t *p) {
    int64_t low, high;
    return rd_kafka_query_watermark_offsets(client, p->topic, p->partition, &low, &high,
               END_TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR &&
           p->offset >= high;
}

/* Of this process; 0 if unknown. */
static uint64_t resident_bytes(void) {
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%*u %" SCNu64, &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Reports growth as soon as it is seen, because the process may be about to die of it. */
static void look_at_memory(struct trials *trials) {
    const rd_kafka_topic_partition_t *p = &trials->current->elems[0];
    uint64_t allowed = trials->resident_bytes + 2 * trials->bytes + GROWTH_BYTES;
    if (trials->has_inflated || resident_bytes() <= allowed) return;
    trials->has_inflated = true;
    source_tell_guard(trials->source, FETCH_TRIAL_INFLATES, p->topic, p->partition);
}

static void start_next(struct trials *trials, rd_kafka_t *client, bool is_cooperative) {
    const rd_kafka_topic_partition_t *p = &trials->waiting->elems[trials->waiting->cnt - 1];
    add(&trials->current, p);
    rd_kafka_topic_partition_list_del_by_idx(trials->waiting, trials->waiting->cnt - 1);
    if (trials->waiting->cnt == 0) destroy_list(&trials->waiting);
    p = &trials->current->elems[0];
    trials->bytes = 0;
    trials->has_inflated = false;
    trials->resident_bytes = resident_bytes();
    trials->deadline_ns = clock_ns() + TRIAL_TIMEOUT_MS * 1000000ull;
    trials->is_over = is_empty(client, p);
    if (trials->is_over) return;
    client_say(trials->events, LOG_INFO,
        "reads %s [%d] alone from offset %" PRId64 ": executors died without a cause after they "
        "had begun there",
        p->topic, (int)p->partition, p->offset);
    source_tell_guard(trials->source, FETCH_TRIAL_BEGINS, p->topic, p->partition);
    (void)assignment_pause(
        client, trials->current, false); /* it may still be paused from an earlier assignment */
    (void)assignment_change(client, is_cooperative, ASSIGNMENT_ADD, trials->current);
}

static void end_current(struct trials *trials, rd_kafka_t *client, bool is_cooperative) {
    const rd_kafka_topic_partition_t *p = &trials->current->elems[0];
    source_tell_guard(trials->source, FETCH_TRIAL_PASSED, p->topic, p->partition);
    (void)assignment_change(client, is_cooperative, ASSIGNMENT_REMOVE, trials->current);
    destroy_list(&trials->current);
}

bool trials_serve(struct trials *trials, rd_kafka_t *client, bool is_cooperative) {
    for (;;) {
        if (trials->current != NULL) {
            look_at_memory(trials);
            if (!trials->is_over && clock_ns() < trials->deadline_ns) return false;
            end_current(trials, client, is_cooperative);
        }
        if (trials->waiting == NULL) return true;
        start_next(trials, client, is_cooperative);
    }
}

static bool is_in(
    const rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition) {
    return list != NULL &&
           rd_kafka_topic_partition_list_find(
               (rd_kafka_topic_partition_list_t *)(uintptr_t)list, topic, partition) != NULL;
}

bool trials_take(struct trials *trials, const rd_kafka_message_t *message) {
    if (trials->current == NULL || message->rkt == NULL ||
        !is_in(trials->current, rd_kafka_topic_name(message->rkt), message->partition))
        return false;
    trials->bytes += message->len + message->key_len;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR || trials->bytes >= trials->bytes_max)
        trials->is_over = true;
    return true;
}

bool trials_is_aside(const struct trials *trials, const char *topic, int32_t partition) {
    return is_in(trials->aside, topic, partition);
}

void trials_skip_aside(const struct trials *trials, rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (trials_is_aside(trials, p->topic, p->partition)) p->offset = RD_KAFKA_OFFSET_END;
    }
}

void trials_pause_aside(const struct trials *trials, rd_kafka_t *client) {
    if (trials->aside != NULL) (void)assignment_pause(client, trials->aside, true);
}

rd_kafka_topic_partition_list_t *trials_take_lifted(struct trials *trials, rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *lifted = NULL;
    if (trials->aside == NULL || clock_ns() < trials->next_look_ns) return NULL;
    trials->next_look_ns = clock_ns() + LOOK_MS * 1000000ull;
    for (int i = 0; i < trials->aside->cnt && lifted == NULL; i++) {
        const rd_kafka_topic_partition_t *p = &trials->aside->elems[i];
        if (source_ask_guard(trials->source, p->topic, p->partition, p->offset) != FETCH_ASIDE)
            add(&lifted, p);
    }
    if (lifted == NULL) return NULL;
    const rd_kafka_topic_partition_t *p = &lifted->elems[0]; /* back to its offset */
    if (assignment_seek(client, p->topic, p->partition, p->offset) == RD_KAFKA_RESP_ERR_NO_ERROR)
        trials_forget(trials, lifted);
    else destroy_list(&lifted); /* they stay aside until the next look */
    return lifted;
}

void trials_forget(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt && trials->aside != NULL; i++) {
        rd_kafka_topic_partition_list_del(
            trials->aside, partitions->elems[i].topic, partitions->elems[i].partition);
        if (trials->aside->cnt == 0) destroy_list(&trials->aside);
    }
}

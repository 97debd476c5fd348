#include "broker/resets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/assignment.h"

enum { TOPIC_NAME_MAX = 249, QUERY_TIMEOUT_MS = 1000 };

/*
 * Since librdkafka 2.0 the line is "[thrd:main]: TOPIC [PARTITION]: offset reset (at offset FROM
 * ...".
 */
static bool parse(const char *line, char topic[static TOPIC_NAME_MAX + 1], struct reset *ret) {
    const char *start = strstr(line, "]: ");
    return start != NULL &&
           sscanf(start, "]: %249s [%" SCNd32 "]: offset reset (at offset %" SCNd64, topic,
               &ret->partition, &ret->from) == 3;
}

static void add(struct resets *resets, struct reset reset) {
    struct reset *grown = realloc(resets->items, (resets->count + 1) * sizeof grown[0]);
    if (grown != NULL) resets->items = grown;
    if (grown != NULL && reset.topic != NULL) grown[resets->count++] = reset;
    else {
        free(reset.topic);
        resets->lacks_one = true;
    }
}

void resets_init(struct resets *resets, struct recreations *recreations) {
    *resets = (struct resets){.recreations = recreations};
}

void resets_fini(struct resets *resets) {
    for (size_t i = 0; i < resets->count; i++) free(resets->items[i].topic);
    free(resets->items);
}

bool resets_note(struct resets *resets, const char *facility, const char *line) {
    if (strcmp(facility, "OFFSET") != 0 || strstr(line, "offset reset") == NULL) return false;
    char topic[TOPIC_NAME_MAX + 1];
    struct reset reset;
    int64_t earlier;
    if (!parse(line, topic, &reset)) return true;
    /* if it is reset twice before a message arrives, everything after the first offset was lost */
    if (resets_take(resets, topic, reset.partition, &earlier)) reset.from = earlier;
    reset.topic = strdup(topic);
    add(resets, reset);
    return true;
}

bool resets_take(struct resets *resets, const char *topic, int32_t partition, int64_t *from) {
    for (size_t i = 0; i < resets->count; i++) {
        struct reset *reset = &resets->items[i];
        if (reset->partition != partition || strcmp(reset->topic, topic) != 0) continue;
        *from = reset->from;
        free(reset->topic);
        *reset = resets->items[--resets->count];
        return true;
    }
    return false;
}

void resets_forget(struct resets *resets, const char *topic, int32_t partition) {
    int64_t from;
    (void)resets_take(resets, topic, partition, &from);
}

static void tell_expired(
    const struct resets *resets, const char *topic, int32_t partition, int64_t from, int64_t to) {
    uint64_t count = offsets_missing(resets->recreations->offsets, topic, partition, from, to);
    if (count == 0) return;
    source_add_expired(resets->recreations->source, count);
    client_say(resets->recreations->events, LOG_ERROR,
        "%s [%d] lost %" PRIu64 " messages to retention, from offset %" PRId64 " to %" PRId64
        ", before they were read; keep them longer (retention.ms), or run more workers",
        topic, (int)partition, count, from, to - 1);
}

/* Where the log ended when `message` was fetched. */
static int64_t end_of_log(
    const struct resets *resets, const char *topic, const rd_kafka_message_t *message) {
    int64_t low, high = message->offset;
    if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
        (void)rd_kafka_get_watermark_offsets(
            resets->recreations->client, topic, message->partition, &low, &high);
    return high;
}

/* From `from` on, the first offset that the log still has; `from` where that is unknown. */
static int64_t find_start(
    const struct resets *resets, const char *topic, int32_t partition, int64_t from) {
    int64_t low, high;
    rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        resets->recreations->client, topic, partition, &low, &high, QUERY_TIMEOUT_MS);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && low > from ? low : from;
}

static void go_on_at(const struct resets *resets, const char *topic, int32_t partition,
    int64_t offset, struct error *failure) {
    rd_kafka_resp_err_t code =
        assignment_seek(resets->recreations->client, topic, partition, offset);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) client_lost(failure, code, "reading on after a reset");
}

/* Retention took the start of the log. With `auto.offset.reset: latest` the client went on at the
 * end of what is left, which counts for a group that is new: it is read from its start. Where that
 * is unknown, the partition is reset once more, and looked at again. */
static bool move_up(const struct resets *resets, const char *topic,
    const rd_kafka_message_t *message, int64_t from, struct error *failure) {
    int64_t start = find_start(resets, topic, message->partition, from);
    tell_expired(resets, topic, message->partition, from, start);
    if (start == message->offset) return false;
    go_on_at(resets, topic, message->partition, start, failure);
    return true;
}

bool resets_move(struct resets *resets, const rd_kafka_message_t *message, struct error *failure) {
    const char *topic = rd_kafka_topic_name(message->rkt);
    int32_t partition = message->partition;
    int64_t from;
    if (resets->lacks_one) {
        error_no_memory(failure, "no memory to note that a log ends before what was read of it");
        return true;
    }
    if (!resets_take(resets, topic, partition, &from)) return false;
    if (message->offset >= from) return move_up(resets, topic, message, from, failure);
    enum log_identity identity = recreations_check(resets->recreations, topic, partition);
    if (identity == LOG_IS_OTHER) return true;
    /* What is unknown yet is reset once more, and looked at again. */
    if (identity == LOG_IS_UNKNOWN || offsets_are_under_way(resets->recreations->offsets)) {
        go_on_at(resets, topic, partition, from, failure);
        return true;
    }
    int64_t end = end_of_log(resets, topic, message);
    if (end >= from) {
        client_say(resets->recreations->events, LOG_WARN,
            "%s [%d] no longer reaches offset %" PRId64 ": it is read again from %" PRId64, topic,
            (int)partition, from, message->offset);
        return false;
    }
    client_say(resets->recreations->events, LOG_ERROR,
        "%s [%d] ends at offset %" PRId64 ", and had been read up to %" PRId64
        ": its brokers have lost %" PRId64 " messages that were read, and maybe others that were "
        "not; reading goes on at the end; was a leader elected that did not have all of the log "
        "(unclean.leader.election.enable)?",
        topic, (int)partition, end, from, from - end);
    go_on_at(resets, topic, partition, recreations_cut(resets->recreations, topic, partition, end),
        failure);
    return true;
}

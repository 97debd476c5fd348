#include "broker/resets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPIC_NAME_MAX = 249 };

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
    else free(reset.topic);
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

void resets_tell(struct resets *resets, struct source *source, const struct client_events *events,
    const char *topic, int32_t partition, int64_t offset) {
    int64_t from;
    if (!resets_take(resets, topic, partition, &from)) return;
    if (offset <= from) {
        client_say(events, LOG_WARN,
            "%s [%d] no longer reaches offset %" PRId64 ": it is read again from %" PRId64, topic,
            (int)partition, from, offset);
        return;
    }
    uint64_t count = (uint64_t)(offset - from);
    source_add_expired(source, count);
    client_say(events, LOG_ERROR,
        "%s [%d] lost %" PRIu64 " messages to retention, from offset %" PRId64 " to %" PRId64
        ", before they were read; keep them longer (retention.ms), or run more workers",
        topic, (int)partition, count, from, offset - 1);
}

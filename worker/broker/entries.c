#include "broker/entries.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>

#include "base/invariant.h"
#include "broker/clients.h"
#include "broker/commit_list.h"

void entries_init(struct entries *entries) {
    entries->first = NULL;
    entries->last_next = &entries->first;
}

void entries_add(struct entries *entries, struct entry *entry) {
    entry->next = NULL;
    *entries->last_next = entry;
    entries->last_next = &entry->next;
}

struct entry *entries_take_first(struct entries *entries) {
    struct entry *entry = entries->first;
    if (entry == NULL) return NULL;
    entries->first = entry->next;
    if (entries->first == NULL) entries_init(entries);
    entry->next = NULL;
    return entry;
}

struct entry *entries_take(struct entries *entries) {
    struct entry *first = entries->first;
    entries_init(entries);
    return first;
}

void entries_settle(struct entry *first) {
    while (first != NULL) {
        struct record *record = first->record;
        struct error err = first->err;
        struct entry *next = first->next;
        free(first);
        record->on_settled(record, err.code, err.code != ERR_OK ? &err : NULL);
        first = next;
    }
}

void entries_settle_before(struct entries *waiting, struct entry *first) {
    struct entries later = *waiting;
    entries_init(waiting);
    entries_settle(first);
    if (later.first == NULL) return;
    *waiting->last_next = later.first;
    waiting->last_next = later.last_next;
}

void entries_fail(struct entries *entries, const struct error *err) {
    struct entry *first = entries_take(entries);
    for (struct entry *entry = first; entry != NULL; entry = entry->next) entry->err = *err;
    entries_settle(first);
}

/* The reason is then in its error. */
static bool is_over(struct offsets *offsets, struct entry *entry) {
    const struct position *answers = entry->record->answers;
    if (answers != NULL && !offsets_holds(offsets, answers))
        error_set(&entry->err, ERR_REVOKED, 0, "", "the message belongs to another worker now");
    return entry->err.code == ERR_REVOKED || entry->err.code == ERR_PUBLISH_REFUSED;
}

void entries_sort_out(
    struct entry *first, struct offsets *offsets, struct entries *kept, struct entries *over) {
    struct entry *next;
    for (struct entry *entry = first; entry != NULL; entry = next) {
        next = entry->next;
        bool ends = is_over(offsets, entry);
        if (!ends) entry->err.code = ERR_OK;
        entries_add(ends ? over : kept, entry);
    }
}

const struct position **entries_list_answered(const struct entries *entries, size_t count) {
    const struct position **positions = calloc(count + 1, sizeof positions[0]);
    size_t found = 0;
    if (positions == NULL) return NULL;
    for (const struct entry *entry = entries->first; entry != NULL; entry = entry->next)
        if (entry->record->is_last && ++found <= count)
            positions[found - 1] = entry->record->answers;
    INVARIANT(found == count, "a transaction without failures has an answer for each message");
    return positions;
}

void entries_refuse(
    struct entries *entries, const struct sink *producer, int native, struct error *failure) {
    const char *reason = rd_kafka_err2str((rd_kafka_resp_err_t)native);
    const struct entry *first = NULL;
    bool any = false;
    for (struct entry *entry = entries->first; entry != NULL; entry = entry->next) {
        if (entry->is_delivered) continue;
        producer_refuse(producer, entry->record, native, reason, &entry->err);
        if (first == NULL) first = entry;
        any = any || entry->err.code == ERR_PUBLISH_REFUSED;
    }
    if (!any && first != NULL) *failure = first->err;
}

bool entries_were_committed(const struct entries *entries, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *wanted,
    const rd_kafka_topic_partition_list_t *committed) {
    for (const struct entry *entry = entries->first; entry != NULL; entry = entry->next) {
        const struct position *answers = entry->record->answers;
        if (!entry->record->is_last || !offsets_holds(offsets, answers)) continue;
        return commit_list_is_same(
            rd_kafka_topic_partition_list_find(wanted, answers->topic, answers->partition),
            rd_kafka_topic_partition_list_find(committed, answers->topic, answers->partition));
    }
    return false;
}

#include "broker/entries.h"

#include <stdlib.h>

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

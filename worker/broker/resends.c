#include "broker/resends.h"

#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"

void resends_fini(struct resends *resends) {
    free(resends->records);
    *resends = (struct resends){0};
}

bool resends_add(struct resends *resends, struct record *record) {
    if (resends->count == resends->room) {
        size_t room = 2 * resends->room + 16;
        struct record **grown = realloc(resends->records, room * sizeof grown[0]);
        if (grown == NULL) return false;
        resends->records = grown;
        resends->room = room;
    }
    resends->records[resends->count++] = record;
    return true;
}

static void begin_group(struct resends *resends) {
    size_t max = resends->group_max > 0 ? resends->group_max : (resends->count + 1) / 2;
    resends->group_count = resends->count < max ? resends->count : max;
    resends->group_sent = resends->group_answered = 0;
    resends->was_refused = false;
}

/* The next group is larger if all of this one were taken. */
static void end_group(struct resends *resends) {
    size_t size = resends->group_count;
    resends->group_max = resends->was_refused ? (size + 1) / 2 : 2 * size;
    if (resends->count == 0) resends->group_max = 0;
    resends->group_count = resends->sent_count = 0;
}

struct record *resends_next(struct resends *resends) {
    if (resends->count == 0) return NULL;
    if (resends->group_count == 0) begin_group(resends);
    if (resends->group_sent == resends->group_count) return NULL;
    resends->group_sent++;
    return resends->records[resends->sent_count++];
}

/* Of one that was sent. */
static void remove_sent(struct resends *resends, const struct record *record) {
    size_t index = 0;
    while (index < resends->sent_count && resends->records[index] != record) index++;
    INVARIANT(index < resends->sent_count, "while a group is on its way, nothing else is");
    resends->count--;
    resends->sent_count--;
    memmove(&resends->records[index], &resends->records[index + 1],
        (resends->count - index) * sizeof resends->records[0]);
}

bool resends_report(struct resends *resends, const struct record *record, bool is_refused) {
    bool is_settled = !is_refused || resends->group_count == 1;
    resends->was_refused = resends->was_refused || is_refused;
    if (is_settled) remove_sent(resends, record);
    resends->group_answered++;
    if (resends->group_answered == resends->group_count) end_group(resends);
    return is_settled;
}

struct record *resends_take_waiting(struct resends *resends) {
    if (resends->count == resends->sent_count) return NULL;
    return resends->records[--resends->count];
}

#include "broker/recreations.h"

#include <string.h>

#include "base/clock.h"
#include "broker/assignment.h"

enum {
    REQUEST_TIMEOUT_MS = 2000,
    WAIT_MS = 2000, /* for an answer, where the caller cannot come again */
    LOCATE_MS = 500,
    NAME_SIZE = 512
};

void recreations_init(struct recreations *recreations, rd_kafka_t *client, struct offsets *offsets,
    struct held *held, struct source *source, const struct client_events *events) {
    *recreations = (struct recreations){.client = client,
        .offsets = offsets,
        .held = held,
        .source = source,
        .events = events,
        .answers = rd_kafka_queue_new(client),
        .known = rd_kafka_topic_partition_list_new(0)};
}

void recreations_fini(struct recreations *recreations) {
    if (recreations->answers != NULL) rd_kafka_queue_destroy(recreations->answers);
    if (recreations->known != NULL) rd_kafka_topic_partition_list_destroy(recreations->known);
    if (recreations->asked != NULL) rd_kafka_topic_partition_list_destroy(recreations->asked);
    if (recreations->found != NULL) rd_kafka_topic_partition_list_destroy(recreations->found);
    topic_ids_fini(&recreations->ids);
}

void recreations_forget(struct recreations *recreations, const char *topic, int32_t partition) {
    (void)rd_kafka_topic_partition_list_del(recreations->known, topic, partition);
    topic_ids_forget(&recreations->ids, topic);
}

/* Without requiring that transactions have ended: those that are open do not hold up the answer. */
static void ask_group(
    struct recreations *recreations, const rd_kafka_topic_partition_list_t *partitions) {
    char group[NAME_SIZE], reason[256];
    size_t size = sizeof group;
    if (rd_kafka_conf_get(rd_kafka_conf(recreations->client), "group.id", group, &size) !=
        RD_KAFKA_CONF_OK)
        return;
    rd_kafka_ListConsumerGroupOffsets_t *asked =
        rd_kafka_ListConsumerGroupOffsets_new(group, partitions);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(recreations->client, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
    (void)!rd_kafka_AdminOptions_set_request_timeout(
        options, REQUEST_TIMEOUT_MS, reason, sizeof reason);
    rd_kafka_ListConsumerGroupOffsets(
        recreations->client, &asked, 1, options, recreations->answers);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ListConsumerGroupOffsets_destroy(asked);
    recreations->asked_count++;
}

static void ask(
    struct recreations *recreations, const rd_kafka_topic_partition_list_t *partitions) {
    recreations->asked = rd_kafka_topic_partition_list_copy(partitions);
    recreations->found = rd_kafka_topic_partition_list_new(0);
    if (topic_ids_ask(recreations->client, partitions, REQUEST_TIMEOUT_MS, recreations->answers))
        recreations->asked_count++;
    else ask_group(recreations, partitions);
}

/* NULL: the group did not say. */
static const rd_kafka_topic_partition_list_t *offsets_in(rd_kafka_event_t *event) {
    const rd_kafka_ListConsumerGroupOffsets_result_t *result =
        rd_kafka_event_ListConsumerGroupOffsets_result(event);
    if (result == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) return NULL;
    size_t count;
    const rd_kafka_group_result_t **groups =
        rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count);
    bool is_told = count == 1 && rd_kafka_group_result_error(groups[0]) == NULL;
    return is_told ? rd_kafka_group_result_partitions(groups[0]) : NULL;
}

/* Whether the group had something for it, and has nothing any more. */
static bool is_other(struct recreations *recreations, const rd_kafka_topic_partition_t *told) {
    if (told->err != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    bool was_known = rd_kafka_topic_partition_list_find(
                         recreations->known, told->topic, told->partition) != NULL;
    if (told->offset >= 0 && !was_known)
        rd_kafka_topic_partition_list_add(recreations->known, told->topic, told->partition);
    return told->offset < 0 && was_known;
}

static void add_found(struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    if (rd_kafka_topic_partition_list_find(recreations->found, p->topic, p->partition) == NULL)
        rd_kafka_topic_partition_list_add(recreations->found, p->topic, p->partition);
}

static void on_changed(void *context, const char *topic) {
    struct recreations *recreations = context;
    for (int i = 0; i < recreations->asked->cnt; i++)
        if (strcmp(recreations->asked->elems[i].topic, topic) == 0)
            add_found(recreations, &recreations->asked->elems[i]);
}

static void take_answer(struct recreations *recreations, rd_kafka_event_t *event) {
    recreations->asked_count--;
    bool are_all_told;
    if (topic_ids_take(&recreations->ids, event, on_changed, recreations, &are_all_told)) {
        if (!are_all_told) ask_group(recreations, recreations->asked);
        return;
    }
    const rd_kafka_topic_partition_list_t *told = offsets_in(event);
    for (int i = 0; told != NULL && i < told->cnt; i++)
        if (is_other(recreations, &told->elems[i])) add_found(recreations, &told->elems[i]);
}

/* Waits until all is answered; NULL: it is not yet. The caller destroys the list. */
static rd_kafka_topic_partition_list_t *find(
    struct recreations *recreations, uint64_t deadline_ns) {
    while (recreations->asked_count > 0) {
        uint64_t now_ns = clock_ns();
        int wait_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / 1000000u) : 0;
        rd_kafka_event_t *event = rd_kafka_queue_poll(recreations->answers, wait_ms);
        if (event == NULL) return NULL;
        take_answer(recreations, event);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_topic_partition_list_t *found = recreations->found;
    rd_kafka_topic_partition_list_destroy(recreations->asked);
    recreations->asked = recreations->found = NULL;
    return found;
}

static void tell(const struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    client_say(recreations->events, LOG_WARN,
        "%s [%d]: the topic was deleted and created anew; it is read from its start", p->topic,
        (int)p->partition);
}

/* The start of its log; false while the topic is only deleted. */
static bool locate(const struct recreations *recreations, rd_kafka_topic_partition_t *p) {
    int64_t end;
    return rd_kafka_query_watermark_offsets(recreations->client, p->topic, p->partition, &p->offset,
               &end, LOCATE_MS) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Leaves on the list what could not be begun: the next look finds it again. */
static void begin_anew(
    struct recreations *recreations, rd_kafka_topic_partition_list_t *partitions) {
    for (int i = partitions->cnt - 1; i >= 0; i--) {
        rd_kafka_topic_partition_t *p = &partitions->elems[i];
        if (!locate(recreations, p) || assignment_seek(recreations->client, p->topic, p->partition,
                                           p->offset) != RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        (void)offsets_truncate(recreations->offsets, p->topic, p->partition, p->offset);
        held_drop_of(recreations->held, p->topic, p->partition);
        recreations_forget(recreations, p->topic, p->partition);
        source_tell_committed(recreations->source, p->topic, p->partition, INT64_MAX);
        tell(recreations, p);
        rd_kafka_topic_partition_list_del_by_idx(partitions, i);
    }
}

static void take_off(
    rd_kafka_topic_partition_list_t *partitions, const rd_kafka_topic_partition_list_t *found) {
    for (int i = 0; i < found->cnt; i++)
        rd_kafka_topic_partition_list_del(
            partitions, found->elems[i].topic, found->elems[i].partition);
}

bool recreations_serve(
    struct recreations *recreations, rd_kafka_topic_partition_list_t *partitions) {
    if (partitions->cnt == 0) return true;
    if (recreations->asked == NULL) ask(recreations, partitions);
    rd_kafka_topic_partition_list_t *found = find(recreations, 0);
    if (found == NULL) return false;
    begin_anew(recreations, found);
    take_off(partitions, found);
    rd_kafka_topic_partition_list_destroy(found);
    return true;
}

/* NULL: there was no answer in time. What was asked before is answered first. */
static rd_kafka_topic_partition_list_t *look_now(struct recreations *recreations,
    const rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns) {
    rd_kafka_topic_partition_list_t *earlier = NULL;
    if (partitions->cnt == 0) return NULL;
    if (recreations->asked != NULL) earlier = find(recreations, deadline_ns);
    if (recreations->asked != NULL) return NULL;
    ask(recreations, partitions);
    for (int i = 0; earlier != NULL && i < earlier->cnt; i++)
        add_found(recreations, &earlier->elems[i]); /* an id changes only once */
    if (earlier != NULL) rd_kafka_topic_partition_list_destroy(earlier);
    return find(recreations, deadline_ns);
}

void recreations_take_out(struct recreations *recreations,
    rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns) {
    uint64_t latest_ns = clock_ns_in(WAIT_MS);
    rd_kafka_topic_partition_list_t *found =
        look_now(recreations, partitions, deadline_ns < latest_ns ? deadline_ns : latest_ns);
    if (found == NULL) return;
    take_off(partitions, found);
    for (int i = 0; i < found->cnt; i++) tell(recreations, &found->elems[i]);
    rd_kafka_topic_partition_list_destroy(found);
}

bool recreations_check(struct recreations *recreations, const char *topic, int32_t partition) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, topic, partition);
    rd_kafka_topic_partition_list_t *found = look_now(recreations, one, clock_ns_in(WAIT_MS));
    bool is_other = found != NULL && found->cnt > 0;
    if (is_other) begin_anew(recreations, found);
    if (found != NULL) rd_kafka_topic_partition_list_destroy(found);
    rd_kafka_topic_partition_list_destroy(one);
    return is_other;
}

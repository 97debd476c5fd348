#include "broker/recreations.h"

#include <string.h>

#include "base/clock.h"
#include "broker/assignment.h"

enum {
    REQUEST_TIMEOUT_MS = 2000,
    WAIT_MS = 5000, /* for an answer, where the caller cannot come again */
    STEP_MS = 10,
    PAUSE_MS = 500, /* after a look without an answer, or with one that is no good */
    LOCATE_MS = 500,
    LEARN_TRIES = 3 /* then it is one of the brokers that cannot tell ids, but do not say so */
};

void recreations_init(struct recreations *recreations, rd_kafka_t *client, struct offsets *offsets,
    struct held *held, struct source *source, struct client_events *events) {
    *recreations = (struct recreations){.client = client,
        .offsets = offsets,
        .held = held,
        .source = source,
        .events = events,
        .answers = rd_kafka_queue_new(client),
        .known = rd_kafka_topic_partition_list_new(0),
        .found = rd_kafka_topic_partition_list_new(0),
        .unsure = rd_kafka_topic_partition_list_new(0)};
}

void recreations_fini(struct recreations *recreations) {
    rd_kafka_topic_partition_list_t *lists[] = {
        recreations->known, recreations->found, recreations->unsure, recreations->asked};
    observer_destroy(recreations->observer);
    if (recreations->answers != NULL) rd_kafka_queue_destroy(recreations->answers);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i] != NULL) rd_kafka_topic_partition_list_destroy(lists[i]);
    topic_ids_fini(&recreations->ids);
}

void recreations_forget(struct recreations *recreations, const char *topic, int32_t partition) {
    (void)rd_kafka_topic_partition_list_del(recreations->known, topic, partition);
    (void)rd_kafka_topic_partition_list_del(recreations->found, topic, partition);
}

static bool has(const rd_kafka_topic_partition_list_t *list, const rd_kafka_topic_partition_t *p) {
    return rd_kafka_topic_partition_list_find(list, p->topic, p->partition) != NULL;
}

static void add(rd_kafka_topic_partition_list_t *list, const rd_kafka_topic_partition_t *p) {
    if (!has(list, p)) rd_kafka_topic_partition_list_add(list, p->topic, p->partition);
}

static void ask_group(struct recreations *recreations) {
    if (recreations->observer == NULL)
        recreations->observer = observer_create(recreations->client, rd_kafka_committed);
    recreations->is_group_asked = recreations->observer != NULL;
    if (recreations->is_group_asked) observer_ask(recreations->observer, recreations->asked);
    else recreations->look = LOOK_FAILED;
}

static bool are_ids_known(const struct recreations *recreations) {
    for (int i = 0; i < recreations->asked->cnt; i++)
        if (topic_ids_state(&recreations->ids, recreations->asked->elems[i].topic) ==
            TOPIC_ID_UNKNOWN)
            return false;
    return true;
}

/* An answer about ids that a look before did not wait for is no answer to this one. */
static void begin_look(
    struct recreations *recreations, const rd_kafka_topic_partition_list_t *partitions) {
    recreations->asked = rd_kafka_topic_partition_list_copy(partitions);
    rd_kafka_topic_partition_list_destroy(recreations->unsure);
    recreations->unsure = rd_kafka_topic_partition_list_new(0);
    recreations->look = LOOK_ASKED;
    bool asks_ids = !recreations->are_ids_asked && topic_ids_ask(recreations->client, partitions,
                                                       REQUEST_TIMEOUT_MS, recreations->answers);
    if (asks_ids) recreations->are_ids_asked = true;
    if (!asks_ids || !are_ids_known(recreations)) ask_group(recreations);
}

static void end_look(struct recreations *recreations) {
    rd_kafka_topic_partition_list_destroy(recreations->asked);
    recreations->asked = NULL;
    recreations->look = LOOK_NONE;
}

/* Whether it is read from another topic than the one that has its name now. */
static bool has_other_id(struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    char id[TOPIC_ID_SIZE];
    const char *told = topic_ids_get(&recreations->ids, p->topic);
    offsets_get_topic_id(recreations->offsets, p->topic, p->partition, id);
    if (id[0] == 0) offsets_set_topic_id(recreations->offsets, p->topic, p->partition, told);
    return topic_ids_differ(id, told);
}

/* What was committed for a topic that is being deleted may yet be there. */
static void conclude(struct recreations *recreations) {
    for (int i = 0; i < recreations->asked->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &recreations->asked->elems[i];
        if (topic_ids_state(&recreations->ids, p->topic) == TOPIC_ID_MISSING)
            add(recreations->unsure, p);
        else if (has_other_id(recreations, p)) add(recreations->found, p);
    }
    recreations->look = LOOK_TOLD;
    recreations->is_reported = false;
}

static void take_ids(struct recreations *recreations, rd_kafka_event_t *event) {
    recreations->are_ids_asked = false;
    bool are_told = topic_ids_take(&recreations->ids, recreations->client, event);
    if (recreations->is_group_asked || recreations->look != LOOK_ASKED) return;
    if (are_told && are_ids_known(recreations)) conclude(recreations);
    else ask_group(recreations);
}

static bool is_checked(
    const struct recreations *recreations, const rd_kafka_topic_partition_t *told) {
    const rd_kafka_topic_partition_t *checked = recreations->checked;
    return checked != NULL && checked->partition == told->partition &&
           strcmp(checked->topic, told->topic) == 0;
}

/* Whether the group had something for it, and has nothing any more. It had what we committed when
 * we took the partition over, but may tell that late, so a log that is shorter has to say so, too.
 */
static bool is_other(struct recreations *recreations, const rd_kafka_topic_partition_t *told) {
    bool was_known = has(recreations->known, told) || is_checked(recreations, told);
    if (told->offset >= 0) add(recreations->known, told);
    return told->offset < 0 && was_known;
}

static void report(struct recreations *recreations, rd_kafka_resp_err_t code) {
    if (!recreations->is_reported)
        client_report(recreations->events, code, "asking for the committed offsets failed");
    recreations->is_reported = true;
}

static void take_offsets(struct recreations *recreations) {
    rd_kafka_topic_partition_list_t *told;
    rd_kafka_resp_err_t code;
    if (!observer_take(recreations->observer, &told, &code)) return;
    recreations->is_group_asked = false;
    if (told == NULL) {
        recreations->look = LOOK_FAILED;
        report(recreations, code);
        return;
    }
    for (int i = 0; i < told->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &told->elems[i];
        if (p->err != RD_KAFKA_RESP_ERR_NO_ERROR) add(recreations->unsure, p);
        else if (is_other(recreations, p)) add(recreations->found, p);
    }
    rd_kafka_topic_partition_list_destroy(told);
    conclude(recreations);
}

/* What the answer says; IN_PROGRESS: none has come. */
static rd_kafka_resp_err_t poll_ids(struct recreations *recreations, int wait_ms) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(recreations->answers, wait_ms);
    if (event == NULL) return RD_KAFKA_RESP_ERR__IN_PROGRESS;
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    take_ids(recreations, event);
    rd_kafka_event_destroy(event);
    return code;
}

static enum look wait_for_look(struct recreations *recreations, uint64_t deadline_ns) {
    bool is_late;
    do {
        is_late = clock_ns() >= deadline_ns;
        (void)poll_ids(recreations, is_late ? 0 : STEP_MS);
        if (recreations->is_group_asked) take_offsets(recreations);
    } while (recreations->look == LOOK_ASKED && !is_late);
    return recreations->look;
}

static rd_kafka_resp_err_t wait_for_ids(struct recreations *recreations, uint64_t deadline_ns) {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    while (recreations->are_ids_asked) {
        if (clock_ns() >= deadline_ns) return RD_KAFKA_RESP_ERR__TIMED_OUT;
        code = poll_ids(recreations, STEP_MS);
    }
    return code;
}

rd_kafka_resp_err_t recreations_learn_ids(struct recreations *recreations,
    const rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    uint64_t deadline_ns = clock_ns_in((uint64_t)timeout_ms);
    (void)wait_for_ids(recreations, deadline_ns); /* those of a look */
    if (!recreations->are_ids_asked)
        recreations->are_ids_asked =
            topic_ids_ask(recreations->client, partitions, timeout_ms, recreations->answers);
    rd_kafka_resp_err_t code = wait_for_ids(recreations, deadline_ns);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) recreations->failed_learning = 0;
    else if (++recreations->failed_learning >= LEARN_TRIES) code = RD_KAFKA_RESP_ERR_NO_ERROR;
    return code;
}

const char *recreations_get_id(const struct recreations *recreations, const char *topic) {
    return recreations->failed_learning == 0 ? topic_ids_get(&recreations->ids, topic) : "";
}

static void tell(const struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    client_say(recreations->events, LOG_WARN,
        "%s [%d]: the topic was deleted and created anew; it is read from its start", p->topic,
        (int)p->partition);
}

/* The start of its log; an error while the topic is only deleted. */
static rd_kafka_resp_err_t locate(
    const struct recreations *recreations, rd_kafka_topic_partition_t *p) {
    int64_t end;
    return rd_kafka_query_watermark_offsets(
        recreations->client, p->topic, p->partition, &p->offset, &end, LOCATE_MS);
}

static void drop(struct recreations *recreations, const char *topic, int32_t partition) {
    source_tell_revoked(recreations->source, topic, partition);
    held_drop_of(recreations->held, topic, partition);
}

int64_t recreations_cut(
    struct recreations *recreations, const char *topic, int32_t partition, int64_t end) {
    int64_t next = offsets_truncate(recreations->offsets, topic, partition, end);
    drop(recreations, topic, partition);
    return next;
}

static bool begin_anew(struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    if (assignment_seek(recreations->client, p->topic, p->partition, p->offset) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    offsets_begin_anew(recreations->offsets, p->topic, p->partition, p->offset);
    drop(recreations, p->topic, p->partition);
    offsets_set_topic_id(
        recreations->offsets, p->topic, p->partition, topic_ids_get(&recreations->ids, p->topic));
    recreations_forget(recreations, p->topic, p->partition);
    source_tell_committed(recreations->source, p->topic, p->partition, INT64_MAX);
    tell(recreations, p);
    return true;
}

/* The topic is there again, with fewer partitions. A cooperative group leaves one that is gone with
 * who had it, and who does not follow it any more then. */
static bool is_gone(const struct recreations *recreations, const rd_kafka_topic_partition_t *p) {
    struct offsets_state state;
    rd_kafka_topic_partition_t first = {.topic = p->topic};
    if (!offsets_get(recreations->offsets, p->topic, p->partition, &state)) return true;
    return p->partition > 0 && locate(recreations, &first) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Returns how many have to wait: those that cannot be begun yet are tried again with the next look.
 * So are those that are gone, but there is nothing of them to wait for. */
static int begin_found(
    struct recreations *recreations, const rd_kafka_topic_partition_list_t *partitions) {
    int waiting = 0;
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t p = partitions->elems[i];
        if (!has(recreations->found, &p)) continue;
        rd_kafka_resp_err_t code = locate(recreations, &p);
        if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && is_gone(recreations, &p)) {
            offsets_revoke(recreations->offsets, p.topic, p.partition);
            drop(recreations, p.topic, p.partition);
        } else if (code != RD_KAFKA_RESP_ERR_NO_ERROR || !begin_anew(recreations, &p)) {
            waiting++;
        }
    }
    return waiting;
}

static void take_off(rd_kafka_topic_partition_list_t *partitions,
    const rd_kafka_topic_partition_list_t *uncommitted) {
    for (int i = 0; i < uncommitted->cnt; i++)
        rd_kafka_topic_partition_list_del(
            partitions, uncommitted->elems[i].topic, uncommitted->elems[i].partition);
}

bool recreations_serve(
    struct recreations *recreations, rd_kafka_topic_partition_list_t *partitions) {
    if (partitions->cnt == 0) return true;
    if (recreations->look == LOOK_NONE && clock_ns() < recreations->next_look_ns) return false;
    if (recreations->look == LOOK_NONE) begin_look(recreations, partitions);
    bool is_told = wait_for_look(recreations, 0) == LOOK_TOLD;
    if (recreations->look == LOOK_ASKED) return false;
    end_look(recreations);
    int waiting = begin_found(recreations, partitions);
    take_off(partitions, recreations->found);
    int count = partitions->cnt;
    take_off(partitions, recreations->unsure);
    bool is_clean = is_told && waiting == 0 && partitions->cnt == count;
    recreations->next_look_ns = is_clean ? 0 : clock_ns_in(PAUSE_MS);
    return is_told;
}

/* False: there was no answer in time. What was asked before is answered first. */
static bool look_now(struct recreations *recreations,
    const rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns) {
    if (recreations->look != LOOK_NONE) {
        if (wait_for_look(recreations, deadline_ns) == LOOK_ASKED) return false;
        end_look(recreations);
    }
    begin_look(recreations, partitions);
    bool is_told = wait_for_look(recreations, deadline_ns) == LOOK_TOLD;
    if (recreations->look != LOOK_ASKED) end_look(recreations);
    return is_told;
}

bool recreations_take_out(struct recreations *recreations,
    rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns) {
    uint64_t latest_ns = clock_ns_in(WAIT_MS);
    if (partitions->cnt == 0) return true;
    bool is_told =
        look_now(recreations, partitions, deadline_ns < latest_ns ? deadline_ns : latest_ns);
    for (int i = 0; i < partitions->cnt; i++)
        if (has(recreations->found, &partitions->elems[i]))
            tell(recreations, &partitions->elems[i]);
    take_off(partitions, recreations->found);
    take_off(partitions, recreations->unsure);
    return is_told;
}

enum log_identity recreations_check(
    struct recreations *recreations, const char *topic, int32_t partition) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    recreations->checked = rd_kafka_topic_partition_list_add(one, topic, partition);
    bool is_told = look_now(recreations, one, clock_ns_in(WAIT_MS));
    recreations->checked = NULL;
    enum log_identity ret =
        is_told && !has(recreations->unsure, &one->elems[0]) ? LOG_IS_SAME : LOG_IS_UNKNOWN;
    if (has(recreations->found, &one->elems[0])) ret = LOG_IS_OTHER;
    (void)begin_found(recreations, one);
    rd_kafka_topic_partition_list_destroy(one);
    return ret;
}

/* Looks first: the id that is known may be that of the topic before. */
void recreations_note(struct recreations *recreations, const char *topic, int32_t partition) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    const rd_kafka_topic_partition_t *p = rd_kafka_topic_partition_list_add(one, topic, partition);
    (void)look_now(recreations, one, clock_ns_in(WAIT_MS));
    add(recreations->found, p);
    (void)begin_found(recreations, one);
    rd_kafka_topic_partition_list_destroy(one);
}

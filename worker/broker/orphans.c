#include "broker/orphans.h"

#include <string.h>

#include "base/clock.h"
#include "base/slice.h"
#include "broker/assignment.h"
#include "broker/produce_request.h"

enum {
    LOOK_AFTER_MS = 3000, /* after an assignment, and between looks that say nothing */
    LOOKS_MAX = 20,       /* of those: a group that may not be described is not asked for ever */
    NAME_SIZE = 512
};

/* Only static members take the place of one that died. */
static bool is_static(rd_kafka_t *client) {
    char name[NAME_SIZE];
    return client_read_conf(client, "group.instance.id", name, sizeof name) && name[0] != 0;
}

void orphans_init(struct orphans *orphans, rd_kafka_t *client, const struct client_events *events,
    uint32_t drain_timeout_ms) {
    *orphans =
        (struct orphans){.client = client, .events = events, .drain_timeout_ms = drain_timeout_ms};
}

void orphans_fini(struct orphans *orphans) {
    observer_destroy(orphans->observer);
    orphans->observer = NULL;
}

void orphans_begin(struct orphans *orphans) {
    if (orphans->looks > 0 || orphans->next_look_ns > 0 || !is_static(orphans->client)) return;
    orphans->next_look_ns = clock_ns_in(LOOK_AFTER_MS);
}

/* The question, on the observer's thread: what the group has given to nobody */

static int remaining_ms(uint64_t until_ns) {
    uint64_t now_ns = clock_ns();
    return now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 1;
}

/* A topic that does not exist may be about to come back. */
static rd_kafka_resp_err_t add_all(rd_kafka_t *client, const char *topic, uint64_t until_ns,
    rd_kafka_topic_partition_list_t *all) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(client, 0, handle, &metadata, remaining_ms(until_ns));
    rd_kafka_topic_destroy(handle);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
    for (int i = 0; i < metadata->topic_cnt; i++) {
        if (metadata->topics[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) code = metadata->topics[i].err;
        for (int partition = 0; partition < metadata->topics[i].partition_cnt; partition++)
            rd_kafka_topic_partition_list_add(all, topic, partition);
    }
    rd_kafka_metadata_destroy(metadata);
    return code;
}

/* A topic's name, and the partitions of it. */
static bool take_out_topic(struct slice *bytes, rd_kafka_topic_partition_list_t *all) {
    char topic[NAME_SIZE];
    struct slice name;
    int16_t size;
    int32_t count, partition;
    if (!produce_take_16(bytes, &size) || !slice_take(bytes, (size_t)size, &name) ||
        name.size >= sizeof topic || !produce_take_32(bytes, &count))
        return false;
    memcpy(topic, name.data, name.size);
    topic[name.size] = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!produce_take_32(bytes, &partition)) return false;
        (void)rd_kafka_topic_partition_list_del(all, topic, partition);
    }
    return true;
}

/* What the member has, in Kafka's form of it: version, topics, data of the assignor. False: it is
 * not in that form. */
static bool take_out(
    const struct rd_kafka_group_member_info *member, rd_kafka_topic_partition_list_t *all) {
    struct slice bytes =
        slice_of(member->member_assignment, (size_t)member->member_assignment_size);
    int16_t version;
    int32_t count;
    if (bytes.size == 0) return true;
    if (!produce_take_16(&bytes, &version) || !produce_take_32(&bytes, &count)) return false;
    for (int32_t i = 0; i < count; i++)
        if (!take_out_topic(&bytes, all)) return false;
    return true;
}

/* False: the group is none whose members have all that they are going to have. */
static bool take_out_owned(
    const struct rd_kafka_group_list *groups, rd_kafka_topic_partition_list_t *all) {
    const struct rd_kafka_group_info *group = NULL;
    for (int i = 0; i < groups->group_cnt && group == NULL; i++)
        if (groups->groups[i].err == RD_KAFKA_RESP_ERR_NO_ERROR &&
            strcmp(groups->groups[i].state, "Stable") == 0)
            group = &groups->groups[i];
    for (int i = 0; group != NULL && i < group->member_cnt; i++)
        if (!take_out(&group->members[i], all)) return false;
    return group != NULL;
}

/* Of the partitions of these topics. Brokers that do not answer may be others than the group's. */
static rd_kafka_resp_err_t find(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    char name[NAME_SIZE];
    const struct rd_kafka_group_list *groups;
    uint64_t until_ns = clock_ns_in((uint64_t)timeout_ms);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int topics = partitions->cnt; topics > 0 && code == RD_KAFKA_RESP_ERR_NO_ERROR; topics--) {
        code = add_all(client, partitions->elems[0].topic, until_ns, partitions);
        rd_kafka_topic_partition_list_del_by_idx(partitions, 0);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
    if (!client_read_conf(client, "group.id", name, sizeof name)) return RD_KAFKA_RESP_ERR__FAIL;
    code = rd_kafka_list_groups(client, name, &groups, remaining_ms(until_ns));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR__PARTIAL) return code;
    bool is_told = take_out_owned(groups, partitions);
    rd_kafka_group_list_destroy(groups);
    return is_told ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__FAIL;
}

/* What becomes of the answer */

static void ask(struct orphans *orphans) {
    rd_kafka_topic_partition_list_t *topics;
    if (orphans->observer == NULL) orphans->observer = observer_create(orphans->client, find);
    if (orphans->observer == NULL ||
        rd_kafka_subscription(orphans->client, &topics) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    observer_ask(orphans->observer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    orphans->is_asked = true;
}

static void look_again(struct orphans *orphans, bool were_seen, uint64_t after_ms) {
    orphans->were_seen = were_seen;
    orphans->next_look_ns = orphans->looks < LOOKS_MAX ? clock_ns_in(after_ms) : 0;
}

static void tell(const struct orphans *orphans, const rd_kafka_topic_partition_list_t *found) {
    char names[256];
    assignment_text(found, names, sizeof names);
    client_say(orphans->events, LOG_WARN,
        "leaves the group and joins it again, so that %s find an owner: a member that was killed "
        "left them to nobody",
        names);
}

/* Whether what was found needs the caller. */
static bool judge(struct orphans *orphans, const rd_kafka_topic_partition_list_t *found) {
    orphans->looks++;
    orphans->next_look_ns = 0;
    if (found == NULL) look_again(orphans, false, LOOK_AFTER_MS);
    else if (found->cnt > 0 && !orphans->were_seen)
        look_again(orphans, true, (uint64_t)orphans->drain_timeout_ms + LOOK_AFTER_MS);
    else if (found->cnt > 0) {
        tell(orphans, found);
        return true;
    }
    return false;
}

bool orphans_serve(struct orphans *orphans) {
    rd_kafka_topic_partition_list_t *found;
    rd_kafka_resp_err_t code;
    if (orphans->next_look_ns == 0 || clock_ns() < orphans->next_look_ns) return false;
    if (!orphans->is_asked) ask(orphans);
    if (!orphans->is_asked || !observer_take(orphans->observer, &found, &code)) return false;
    orphans->is_asked = false;
    bool is_needed = judge(orphans, found);
    if (found != NULL) rd_kafka_topic_partition_list_destroy(found);
    if (orphans->next_look_ns == 0) orphans_fini(orphans); /* it was the last look */
    return is_needed;
}

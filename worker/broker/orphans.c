#include "broker/orphans.h"

#include "base/clock.h"
#include "broker/assignment.h"

enum {
    LOOK_AFTER_MS = 3000, /* after an assignment, and between looks that say nothing */
    LOOKS_MAX = 20,       /* of those: a group that may not be described is not asked for ever */
    REQUEST_TIMEOUT_MS = 5000,
    METADATA_TIMEOUT_MS = 500, /* of each topic; no message is read meanwhile */
    NAME_SIZE = 512
};

/* Only static members take the place of one that died. */
static bool is_static(rd_kafka_t *client) {
    char name[NAME_SIZE];
    return client_read_conf(client, "group.instance.id", name, sizeof name) && name[0] != 0;
}

void orphans_init(struct orphans *orphans, rd_kafka_t *client, const struct client_events *events,
    uint32_t drain_timeout_ms) {
    *orphans = (struct orphans){.client = client,
        .events = events,
        .drain_timeout_ms = drain_timeout_ms,
        .answers = rd_kafka_queue_new(client)};
}

void orphans_fini(struct orphans *orphans) {
    if (orphans->answers != NULL) rd_kafka_queue_destroy(orphans->answers);
}

void orphans_begin(struct orphans *orphans) {
    if (orphans->looks > 0 || orphans->next_look_ns > 0 || !is_static(orphans->client)) return;
    orphans->next_look_ns = clock_ns_in(LOOK_AFTER_MS);
}

static void ask(struct orphans *orphans) {
    char group[NAME_SIZE];
    if (!client_read_conf(orphans->client, "group.id", group, sizeof group)) return;
    const char *groups[] = {group};
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(orphans->client, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
    char reason[256];
    (void)!rd_kafka_AdminOptions_set_request_timeout(
        options, REQUEST_TIMEOUT_MS, reason, sizeof reason);
    rd_kafka_DescribeConsumerGroups(orphans->client, groups, 1, options, orphans->answers);
    rd_kafka_AdminOptions_destroy(options);
    orphans->is_asked = true;
}

static const rd_kafka_ConsumerGroupDescription_t *description_of(rd_kafka_event_t *event) {
    const rd_kafka_DescribeConsumerGroups_result_t *result =
        rd_kafka_event_DescribeConsumerGroups_result(event);
    if (result == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) return NULL;
    size_t count;
    const rd_kafka_ConsumerGroupDescription_t **groups =
        rd_kafka_DescribeConsumerGroups_result_groups(result, &count);
    bool is_stable =
        count == 1 && rd_kafka_ConsumerGroupDescription_error(groups[0]) == NULL &&
        rd_kafka_ConsumerGroupDescription_state(groups[0]) == RD_KAFKA_CONSUMER_GROUP_STATE_STABLE;
    return is_stable ? groups[0] : NULL;
}

static bool is_owned(
    const rd_kafka_ConsumerGroupDescription_t *group, const char *topic, int32_t partition) {
    for (size_t i = 0; i < rd_kafka_ConsumerGroupDescription_member_count(group); i++) {
        const rd_kafka_MemberAssignment_t *assignment = rd_kafka_MemberDescription_assignment(
            rd_kafka_ConsumerGroupDescription_member(group, i));
        const rd_kafka_topic_partition_list_t *owned =
            rd_kafka_MemberAssignment_partitions(assignment);
        if (rd_kafka_topic_partition_list_find(owned, topic, partition) != NULL) return true;
    }
    return false;
}

/* Adds those of one topic. A topic that does not exist has none. False: the brokers do not say. */
static bool add_orphans(rd_kafka_t *client, const rd_kafka_ConsumerGroupDescription_t *group,
    const char *topic, rd_kafka_topic_partition_list_t *found) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(client, 0, handle, &metadata, METADATA_TIMEOUT_MS);
    rd_kafka_topic_destroy(handle);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    for (int i = 0; i < metadata->topic_cnt; i++)
        for (int partition = 0; partition < metadata->topics[i].partition_cnt; partition++)
            if (!is_owned(group, topic, partition))
                rd_kafka_topic_partition_list_add(found, topic, partition);
    rd_kafka_metadata_destroy(metadata);
    return true;
}

/* NULL: neither the brokers nor the group say. */
static rd_kafka_topic_partition_list_t *find(rd_kafka_t *client, rd_kafka_event_t *event) {
    const rd_kafka_ConsumerGroupDescription_t *group = description_of(event);
    rd_kafka_topic_partition_list_t *topics;
    if (group == NULL || rd_kafka_subscription(client, &topics) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return NULL;
    rd_kafka_topic_partition_list_t *found = rd_kafka_topic_partition_list_new(0);
    bool is_known = true;
    for (int i = 0; i < topics->cnt && is_known; i++)
        is_known = add_orphans(client, group, topics->elems[i].topic, found);
    rd_kafka_topic_partition_list_destroy(topics);
    if (is_known) return found;
    rd_kafka_topic_partition_list_destroy(found);
    return NULL;
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
        "while it gave them back left them to nobody",
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
    if (orphans->next_look_ns == 0 || clock_ns() < orphans->next_look_ns) return false;
    if (!orphans->is_asked) ask(orphans);
    rd_kafka_event_t *event = rd_kafka_queue_poll(orphans->answers, 0);
    if (event == NULL) return false;
    orphans->is_asked = false;
    rd_kafka_topic_partition_list_t *found = find(orphans->client, event);
    bool is_needed = judge(orphans, found);
    if (found != NULL) rd_kafka_topic_partition_list_destroy(found);
    rd_kafka_event_destroy(event);
    return is_needed;
}

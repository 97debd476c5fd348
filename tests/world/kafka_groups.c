/* What brokers tell of groups, to clients that need not be members (kafka.h). */
#include <stdio.h>
#include <stdlib.h>

#include "world/kafka.h"
#include "world/scheduler.h"

struct rd_kafka_MemberDescription_s {
    rd_kafka_topic_partition_list_t *assigned;
};

struct rd_kafka_ConsumerGroupDescription_s {
    char name[CLUSTER_NAME_SIZE];
    bool is_told, is_stable;
    size_t member_count;
    struct rd_kafka_MemberDescription_s members[CLUSTER_MEMBERS];
    const rd_kafka_ConsumerGroupDescription_t *self; /* the array of one that is asked for */
};

void kafka_group_describe(struct rd_kafka_ConsumerGroupDescription_s *ret) {
    const struct member *member;
    if (ret->is_told) return;
    ret->is_told = true;
    group_use(ret->name);
    ret->is_stable = group_is_stable();
    while ((member = group_member_at(ret->member_count)) != NULL)
        ret->members[ret->member_count++].assigned = group_assignment(member);
}

void kafka_group_free(struct rd_kafka_ConsumerGroupDescription_s *description) {
    if (description == NULL) return;
    for (size_t i = 0; i < description->member_count; i++)
        rd_kafka_topic_partition_list_destroy(description->members[i].assigned);
    free(description);
}

/* Brokers look at some time between question and answer. */
void rd_kafka_DescribeConsumerGroups(rd_kafka_t *client, const char **groups, size_t count,
    const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = calloc(1, sizeof *event);
    struct rd_kafka_ConsumerGroupDescription_s *asked = calloc(1, sizeof *asked);
    if (event == NULL || asked == NULL || count != 1) abort();
    snprintf(asked->name, sizeof asked->name, "%s", groups[0]);
    asked->self = asked;
    if (scheduler_draw(2) == 0) kafka_group_describe(asked);
    *event = (rd_kafka_event_t){.kind = EVENT_GROUP, .due_ns = kafka_answer_ns(), .group = asked};
    kafka_queue_add(queue, event);
}

const rd_kafka_DescribeConsumerGroups_result_t *rd_kafka_event_DescribeConsumerGroups_result(
    rd_kafka_event_t *event) {
    return event->kind == EVENT_GROUP ? event : NULL;
}

const rd_kafka_ConsumerGroupDescription_t **rd_kafka_DescribeConsumerGroups_result_groups(
    const rd_kafka_DescribeConsumerGroups_result_t *result, size_t *count) {
    *count = 1;
    return &result->group->self;
}

const rd_kafka_error_t *rd_kafka_ConsumerGroupDescription_error(
    const rd_kafka_ConsumerGroupDescription_t *group) {
    return NULL;
}

rd_kafka_consumer_group_state_t rd_kafka_ConsumerGroupDescription_state(
    const rd_kafka_ConsumerGroupDescription_t *group) {
    return group->is_stable ? RD_KAFKA_CONSUMER_GROUP_STATE_STABLE
                            : RD_KAFKA_CONSUMER_GROUP_STATE_PREPARING_REBALANCE;
}

size_t rd_kafka_ConsumerGroupDescription_member_count(
    const rd_kafka_ConsumerGroupDescription_t *group) {
    return group->member_count;
}

const rd_kafka_MemberDescription_t *rd_kafka_ConsumerGroupDescription_member(
    const rd_kafka_ConsumerGroupDescription_t *group, size_t i) {
    return &group->members[i];
}

/* The library keeps them apart. */
const rd_kafka_MemberAssignment_t *rd_kafka_MemberDescription_assignment(
    const rd_kafka_MemberDescription_t *member) {
    return (const rd_kafka_MemberAssignment_t *)member;
}

const rd_kafka_topic_partition_list_t *rd_kafka_MemberAssignment_partitions(
    const rd_kafka_MemberAssignment_t *assignment) {
    return ((const rd_kafka_MemberDescription_t *)assignment)->assigned;
}

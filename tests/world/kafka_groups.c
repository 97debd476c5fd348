/* What brokers tell of groups, to clients that need not be members (kafka.h). */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "world/kafka.h"
#include "world/leaks.h"
#include "world/scheduler.h"

enum { ASSIGNMENT_SIZE = 4096 };

/* One, with all that it points to. Whoever reads a second one follows NULL. */
struct told_group {
    struct rd_kafka_group_list list;
    struct rd_kafka_group_info group, none;
    struct rd_kafka_group_member_info members[CLUSTER_MEMBERS];
    char assignments[CLUSTER_MEMBERS][ASSIGNMENT_SIZE];
};

static char *put_16(char *to, size_t number) {
    uint16_t word = htobe16((uint16_t)number);
    memcpy(to, &word, sizeof word);
    return to + sizeof word;
}

static char *put_32(char *to, int number) {
    uint32_t word = htobe32((uint32_t)number);
    memcpy(to, &word, sizeof word);
    return to + sizeof word;
}

/* Kafka's form: version, topics with their partitions, data of the assignor. Each partition stands
 * with a topic of its own. Returns the end. */
static char *put_assignment(char *to, const rd_kafka_topic_partition_list_t *assigned) {
    to = put_32(put_16(to, 0), assigned->cnt);
    for (int i = 0; i < assigned->cnt; i++) {
        size_t size = strlen(assigned->elems[i].topic);
        memcpy(put_16(to, size), assigned->elems[i].topic, size);
        to = put_32(put_32(to + sizeof(uint16_t) + size, 1), assigned->elems[i].partition);
    }
    return put_32(to, 0);
}

static void tell_member(struct told_group *told, const struct member *member) {
    int number = told->group.member_cnt++;
    rd_kafka_topic_partition_list_t *assigned = group_assignment(member);
    const char *end = put_assignment(told->assignments[number], assigned);
    told->members[number] =
        (struct rd_kafka_group_member_info){.member_assignment = told->assignments[number],
            .member_assignment_size = (int)(end - told->assignments[number])};
    rd_kafka_topic_partition_list_destroy(assigned);
}

/* Brokers look at some time between question and answer. */
rd_kafka_resp_err_t rd_kafka_list_groups(
    rd_kafka_t *client, const char *name, const struct rd_kafka_group_list **ret, int timeout_ms) {
    const struct member *member;
    if (!kafka_reach(client, kafka_until_ns(timeout_ms))) return RD_KAFKA_RESP_ERR__TIMED_OUT;
    struct told_group *told = calloc(1, sizeof *told);
    if (told == NULL) abort();
    group_use(name);
    told->group.state = (char *)(uintptr_t)(group_is_stable() ? "Stable" : "PreparingRebalance");
    told->group.members = told->members;
    while ((member = group_member_at((size_t)told->group.member_cnt)) != NULL)
        tell_member(told, member);
    told->list = (struct rd_kafka_group_list){.groups = &told->group, .group_cnt = 1};
    *ret = leaks_note(&told->list, __builtin_return_address(0));
    kafka_pass_time();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void rd_kafka_group_list_destroy(const struct rd_kafka_group_list *list) {
    free((void *)(uintptr_t)list);
}

#include "world/conformance_rig.h"

#include <string.h>

#include "testing.h"

static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    struct rig *rig = context;
    bool is_assigned = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    rig->rebalances += is_assigned;
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = 0;
    assert_int_equal(
        rd_kafka_assign(client, is_assigned ? partitions : NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
}

rd_kafka_resp_err_t rig_code_of(rd_kafka_error_t *error) {
    rd_kafka_resp_err_t ret = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    return ret;
}

void rig_must(rd_kafka_error_t *error) {
    assert_int_equal(rig_code_of(error), RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void on_change(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *context) {
    struct rig *rig = context;
    assert_string_equal(rd_kafka_rebalance_protocol(client), "COOPERATIVE");
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = 0;
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rig->rebalances++;
        rig->added += partitions->cnt;
        rig_must(rd_kafka_incremental_assign(client, partitions));
    } else {
        rig->taken += partitions->cnt;
        if (rig->keeps) rig->kept = rd_kafka_topic_partition_list_copy(partitions);
        else rig_must(rd_kafka_incremental_unassign(client, partitions));
    }
}

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *text) {
    struct rig *rig = rd_kafka_opaque(client);
    if (strcmp(facility, "OFFSET") == 0 && strstr(text, "offset reset") != NULL) rig->resets++;
}

void rig_take_reports(struct rig *rig) {
    const rd_kafka_message_t *message;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rig->client);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TICK_MS);
    while (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR &&
           (message = rd_kafka_event_message_next(event)) != NULL) {
        rig->report = message->err;
        rig->reported_count++;
    }
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, key, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail_msg("%s: %s", key, why);
}

static void open_as(struct rig *rig, const struct broker *broker, rd_kafka_type_t type,
    const char *id, const char *strategy) {
    bool is_cooperative = strstr(strategy, "cooperative") != NULL;
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    *rig = (struct rig){0};
    set(conf, "bootstrap.servers", broker->bootstrap);
    rd_kafka_conf_set_opaque(conf, rig);
    if (type == RD_KAFKA_CONSUMER) {
        set(conf, "group.id", broker->group);
        set(conf, "enable.auto.commit", "false");
        set(conf, "auto.offset.reset", "earliest");
        set(conf, "partition.assignment.strategy", strategy);
        set(conf, "topic.metadata.refresh.interval.ms", "1000");
        if (id != NULL) set(conf, "group.instance.id", id);
        rd_kafka_conf_set_rebalance_cb(conf, is_cooperative ? on_change : on_rebalance);
        rd_kafka_conf_set_log_cb(conf, on_log);
    } else {
        if (id != NULL) set(conf, "transactional.id", id);
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    }
    rig->client = rd_kafka_new(type, conf, why, sizeof why);
    if (rig->client == NULL) fail_msg("%s", why);
    if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(rig->client);
}

/* `id`: of a static member, or of transactions; NULL: none. */
void rig_open(struct rig *rig, const struct broker *broker, rd_kafka_type_t type, const char *id) {
    open_as(rig, broker, type, id, "range");
}

void rig_open_cooperative(struct rig *rig, const struct broker *broker, const char *id) {
    open_as(rig, broker, RD_KAFKA_CONSUMER, id, "cooperative-sticky");
}

void rig_close(struct rig *rig) {
    rd_kafka_destroy(rig->client);
}

rd_kafka_topic_partition_list_t *rig_list_one(
    const char *topic, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
    return list;
}

void rig_subscribe(struct rig *rig, const struct broker *broker) {
    rd_kafka_topic_partition_list_t *topics = rig_list_one(broker->jobs, RD_KAFKA_PARTITION_UA, 0);
    assert_int_equal(rd_kafka_subscribe(rig->client, topics), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(topics);
}

/* Messages are of no interest. */
void rig_poll(struct rig *rig) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(rig->client, TICK_MS);
    if (message == NULL) return;
    rig->errors += message->err == RD_KAFKA_RESP_ERR__FATAL;
    rd_kafka_message_destroy(message);
}

void rig_poll_for(struct rig *rig, int ms) {
    for (int waited_ms = 0; waited_ms < ms; waited_ms += TICK_MS) rig_poll(rig);
}

int rig_count_assigned(struct rig *rig) {
    rd_kafka_topic_partition_list_t *list;
    rig_poll(rig);
    assert_int_equal(rd_kafka_assignment(rig->client, &list), RD_KAFKA_RESP_ERR_NO_ERROR);
    int ret = list->cnt;
    rd_kafka_topic_partition_list_destroy(list);
    return ret;
}

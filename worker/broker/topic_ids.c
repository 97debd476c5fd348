#include "broker/topic_ids.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The functions are looked up, because the worker is built with a librdkafka that lacks them, and
 * runs with newer ones. Types that the older header does not know are void.
 */
#define FUNCTION_LIST(X)                                                                           \
    X(void *, rd_kafka_TopicCollection_of_topic_names, (const char **names, size_t count))         \
    X(void, rd_kafka_TopicCollection_destroy, (void *topics))                                      \
    X(void, rd_kafka_DescribeTopics,                                                               \
        (rd_kafka_t * client, const void *topics, const void *options, rd_kafka_queue_t *answers)) \
    X(const void *, rd_kafka_event_DescribeTopics_result, (rd_kafka_event_t * event))              \
    X(const void **, rd_kafka_DescribeTopics_result_topics, (const void *result, size_t *count))   \
    X(const char *, rd_kafka_TopicDescription_name, (const void *topic))                           \
    X(const void *, rd_kafka_TopicDescription_error, (const void *topic))                          \
    X(const void *, rd_kafka_TopicDescription_topic_id, (const void *topic))                       \
    X(const char *, rd_kafka_Uuid_base64str, (const void *id))

static struct {
#define X(type, name, arguments) type(*name) arguments;
    FUNCTION_LIST(X)
#undef X
} functions;

static bool has_all; /* set by find_functions() */

static void find_functions(void) {
    has_all = true;
#define X(type, name, arguments)                                                                   \
    functions.name = (type(*) arguments)dlsym(RTLD_DEFAULT, #name);                                \
    has_all = has_all && functions.name != NULL;
    FUNCTION_LIST(X)
#undef X
}

static bool has_functions(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_functions);
    return has_all;
}

void topic_ids_fini(struct topic_ids *ids) {
    for (size_t i = 0; i < ids->count; i++) free(ids->known[i].topic);
    free(ids->known);
    *ids = (struct topic_ids){0};
}

static bool is_named(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static void describe(rd_kafka_t *client, const char **names, size_t count, int timeout_ms,
    rd_kafka_queue_t *answers) {
    char reason[256];
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_ANY);
    (void)!rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason, sizeof reason);
    void *topics = functions.rd_kafka_TopicCollection_of_topic_names(names, count);
    functions.rd_kafka_DescribeTopics(client, topics, options, answers);
    functions.rd_kafka_TopicCollection_destroy(topics);
    rd_kafka_AdminOptions_destroy(options);
}

bool topic_ids_ask(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions,
    int timeout_ms, rd_kafka_queue_t *answers) {
    size_t count = 0;
    const char **names = calloc((size_t)partitions->cnt, sizeof names[0]);
    bool can_ask = names != NULL && has_functions();
    for (int i = 0; i < partitions->cnt && can_ask; i++)
        if (!is_named(names, count, partitions->elems[i].topic))
            names[count++] = partitions->elems[i].topic;
    if (can_ask) describe(client, names, count, timeout_ms, answers);
    free(names);
    return can_ask;
}

static struct topic_id *find(const struct topic_ids *ids, const char *topic) {
    for (size_t i = 0; i < ids->count; i++)
        if (strcmp(ids->known[i].topic, topic) == 0) return &ids->known[i];
    return NULL;
}

/* NULL when memory is short: it stays unknown. */
static struct topic_id *add(struct topic_ids *ids, const char *topic) {
    struct topic_id *grown = realloc(ids->known, (ids->count + 1) * sizeof grown[0]);
    char *name = strdup(topic);
    if (grown != NULL) ids->known = grown;
    if (grown == NULL || name == NULL) {
        free(name);
        return NULL;
    }
    struct topic_id *added = &grown[ids->count++];
    *added = (struct topic_id){.topic = name};
    return added;
}

/* `id` is NULL if it was not told. */
static void note(struct topic_ids *ids, const char *topic, const char *id, const char *cluster) {
    struct topic_id *known = find(ids, topic);
    if (known != NULL) known->is_missing = id == NULL;
    if (id == NULL) return;
    if (known == NULL) known = add(ids, topic);
    if (known != NULL) snprintf(known->id, sizeof known->id, "%s@%s", id, cluster);
}

enum topic_id_state topic_ids_state(const struct topic_ids *ids, const char *topic) {
    const struct topic_id *known = find(ids, topic);
    if (known == NULL) return TOPIC_ID_UNKNOWN;
    return known->is_missing ? TOPIC_ID_MISSING : TOPIC_ID_TOLD;
}

/* Brokers that know no ids tell zero. */
static const char *id_of(const void *topic) {
    static const char none[] = "AAAAAAAAAAAAAAAAAAAAAA";
    if (rd_kafka_error_code(functions.rd_kafka_TopicDescription_error(topic)) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return NULL;
    const char *id =
        functions.rd_kafka_Uuid_base64str(functions.rd_kafka_TopicDescription_topic_id(topic));
    return id != NULL && strncmp(id, none, sizeof none - 1) != 0 ? id : NULL;
}

const char *topic_ids_get(const struct topic_ids *ids, const char *topic) {
    const struct topic_id *known = find(ids, topic);
    return known != NULL && !known->is_missing ? known->id : "";
}

bool topic_ids_differ(const char *a, const char *b) {
    size_t size_a = strcspn(a, "@"), size_b = strcspn(b, "@");
    const char *cluster_a = a + size_a, *cluster_b = b + size_b;
    bool are_known = size_a > 0 && size_b > 0;
    bool are_clusters_known = strlen(cluster_a) > 1 && strlen(cluster_b) > 1;
    if (!are_known || (are_clusters_known && strcmp(cluster_a, cluster_b) != 0)) return false;
    return size_a != size_b || memcmp(a, b, size_a) != 0;
}

bool topic_ids_take(struct topic_ids *ids, rd_kafka_t *client, rd_kafka_event_t *event) {
    const void *result =
        has_functions() ? functions.rd_kafka_event_DescribeTopics_result(event) : NULL;
    if (result == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    size_t count = 0;
    char *cluster = rd_kafka_clusterid(client, 0); /* it came with the answer at the latest */
    const void **topics = functions.rd_kafka_DescribeTopics_result_topics(result, &count);
    for (size_t i = 0; i < count; i++)
        note(ids, functions.rd_kafka_TopicDescription_name(topics[i]), id_of(topics[i]),
            cluster != NULL ? cluster : "");
    if (cluster != NULL) rd_kafka_mem_free(client, cluster);
    return true;
}

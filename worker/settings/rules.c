#include "settings/rules.h"

#include "base/address.h"
#include "base/number.h"
#include "settings/kafka_keys.h"

enum {
    KAFKA_NAME_MAX = 249,
    INSTANCE_ID_MAX = 240, /* each executor's name adds a few characters to it */
    DEVICE_NUMBER_MAX = 1024,
    REBALANCE_MS = 10000 /* to hear of it, to commit and to join again, beside the drain */
};

/* Where the setting of this field is in the file; NULL if it has its default. */
static const struct yaml_node *place_of(const struct loaded *loaded, const void *field) {
    size_t offset = (size_t)((const char *)field - (const char *)loaded->settings);
    for (size_t i = 0; i < setting_count; i++)
        if (setting_table[i].offset == offset) return loaded->nodes[i];
    return NULL;
}

#define ADD(loaded, field, fix, ...)                                                               \
    yaml_problem(                                                                                  \
        (loaded)->problems, (loaded)->document, place_of((loaded), (field)), fix, __VA_ARGS__)

static bool list_has(const struct string_list *list, const char *name, size_t end) {
    for (size_t i = 0; i < end; i++)
        if (strcmp(list->items[i], name) == 0) return true;
    return false;
}

/* A number as the driver counts, or a UUID as nvidia-smi prints it, of a GPU or a part of one. */
static bool is_device_name(const char *name) {
    uint64_t number;
    bool is_uuid = strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0;
    if (is_uuid) return strspn(name + 4, "0123456789abcdef-") == 36 && name[4 + 36] == 0;
    return number_read(name, &number) == strlen(name) && number < DEVICE_NUMBER_MAX;
}

static void check_devices(const struct loaded *loaded) {
    const struct string_list *devices = &loaded->settings->devices;
    for (size_t i = 0; i < devices->count; i++) {
        if (!is_device_name(devices->items[i]))
            ADD(loaded, devices, "nvidia-smi -L lists numbers and UUIDs",
                "'%.80s' is neither the number nor the UUID of a device", devices->items[i]);
        if (list_has(devices, devices->items[i], i))
            ADD(loaded, devices, "remove one of them", "device '%s' is in the list twice",
                devices->items[i]);
    }
}

static void check_driver(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->driver != DRIVER_CPU) return;
    if (s->lane_slab_bytes > s->cpu_driver.memory_bytes / s->lanes / s->lane_depth)
        ADD(loaded, &s->lane_slab_bytes, "raise cpu_driver.memory_bytes",
            "%u lanes with %u batches in flight each, of lane_slab_bytes each, do not fit into "
            "cpu_driver.memory_bytes",
            s->lanes, s->lane_depth);
}

/* Printed settings contain the default servers, and must be valid for any broker. */
static bool has_default_servers(const struct settings *settings) {
    struct settings defaults;
    settings_init(&defaults);
    bool same = strcmp(settings->kafka.bootstrap_servers, defaults.kafka.bootstrap_servers) == 0;
    settings_fini(&defaults);
    return same;
}

static void check_broker(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->broker == BROKER_EMBEDDED && !has_default_servers(s))
        ADD(loaded, &s->kafka.bootstrap_servers, "remove one of them",
            "kafka.bootstrap_servers has no meaning with broker: embedded");
    if (s->broker == BROKER_EMBEDDED && s->delivery == EXACTLY_ONCE)
        ADD(loaded, &s->delivery, "use broker: kafka, or delivery: at_least_once",
            "the embedded broker keeps no offsets of transactions");
}

/* Whether Kafka accepts this as the name of a topic or of a group's member. */
static bool is_kafka_name(const char *name, size_t size_max) {
    size_t size = strlen(name);
    bool known =
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == size;
    return known && size > 0 && size <= size_max && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static void check_topic_name(const struct loaded *loaded, const void *field, const char *name) {
    if (!is_kafka_name(name, KAFKA_NAME_MAX))
        ADD(loaded, field, "use letters, digits, '.', '_' and '-', at most 249",
            "'%.80s' cannot be a topic's name", name);
    else if (strncmp(name, "__", 2) == 0)
        ADD(loaded, field, "use a name that does not begin with __",
            "'%.80s' is a topic of Kafka's own", name);
}

static void check_topic_list(const struct loaded *loaded, const struct string_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        check_topic_name(loaded, list, list->items[i]);
        if (list_has(list, list->items[i], i))
            ADD(loaded, list, "remove one of them", "topic '%s' is in one list twice",
                list->items[i]);
    }
}

/* Messages for other purposes must not cancel jobs. */
static void check_control_topic(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    const char *control = s->topics.control;
    if (control[0] == 0) return;
    check_topic_name(loaded, &s->topics.control, control);
    const char *const others[] = {s->topics.results, s->topics.dead_letters, s->topics.telemetry};
    bool is_shared = list_has(&s->topics.jobs, control, s->topics.jobs.count) ||
                     list_has(&s->topics.reply_to, control, s->topics.reply_to.count);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        is_shared = is_shared || strcmp(others[i], control) == 0;
    if (is_shared)
        ADD(loaded, &s->topics.control, "give control messages a topic of their own",
            "'%s' is used for something else too", control);
}

/* The worker's own messages must not come back as jobs, and only the worker may write dead letters.
 * */
static void check_topics(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    const struct string_list *jobs = &s->topics.jobs, *reply_to = &s->topics.reply_to;
    check_topic_list(loaded, jobs);
    check_topic_list(loaded, reply_to);
    check_topic_name(loaded, &s->topics.results, s->topics.results);
    check_topic_name(loaded, &s->topics.dead_letters, s->topics.dead_letters);
    check_topic_name(loaded, &s->topics.telemetry, s->topics.telemetry);
    check_control_topic(loaded);
    if (list_has(jobs, s->topics.results, jobs->count))
        ADD(loaded, &s->topics.results, "", "results would come back as jobs: '%s'",
            s->topics.results);
    if (list_has(jobs, s->topics.dead_letters, jobs->count))
        ADD(loaded, &s->topics.dead_letters, "", "dead letters would come back as jobs: '%s'",
            s->topics.dead_letters);
    if (list_has(jobs, s->topics.telemetry, jobs->count))
        ADD(loaded, &s->topics.telemetry, "", "telemetry would come back as jobs: '%s'",
            s->topics.telemetry);
    if (strcmp(s->topics.results, s->topics.dead_letters) == 0)
        ADD(loaded, &s->topics.dead_letters, "give them a topic of their own",
            "results and dead letters share the topic '%s'", s->topics.results);
    for (size_t i = 0; i < reply_to->count; i++)
        if (list_has(jobs, reply_to->items[i], jobs->count) ||
            strcmp(reply_to->items[i], s->topics.dead_letters) == 0)
            ADD(loaded, reply_to, "", "results must not go to '%s': it is for jobs or dead letters",
                reply_to->items[i]);
}

static void check_kafka_keys(
    const struct loaded *loaded, const struct string_map *map, const char *path) {
    const struct yaml_node *node = place_of(loaded, map);
    for (size_t i = 0; i < map->count; i++) {
        const struct kafka_refusal *refusal = kafka_key_refusal(map->keys[i]);
        if (refusal != NULL)
            yaml_problem(loaded->problems, loaded->document, node->keys[i], "remove it",
                "%s must not set '%s': %s", path, refusal->key, refusal->reason);
    }
}

/* Adds a problem if this key of the producer is a number over `max`. */
static void check_producer_max(
    const struct loaded *loaded, const char *key, uint64_t max, const char *why) {
    const struct string_map *map = &loaded->settings->kafka.producer;
    const struct yaml_node *node = place_of(loaded, map);
    for (size_t i = 0; i < map->count; i++) {
        uint64_t value;
        const char *text = map->values[i];
        if (strcmp(map->keys[i], key) == 0 && number_read(text, &value) > 0 && value > max)
            yaml_problem(loaded->problems, loaded->document, node->keys[i], "",
                "kafka.producer must not set '%s' over %llu: %s", key, (unsigned long long)max,
                why);
    }
}

uint64_t settings_poll_interval_ms(const struct settings *settings) {
    return (uint64_t)settings->drain_timeout_ms + REBALANCE_MS;
}

static void check_poll_interval(const struct loaded *loaded) {
    const struct string_map *map = &loaded->settings->kafka.consumer;
    uint64_t min = settings_poll_interval_ms(loaded->settings), value;
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], "max.poll.interval.ms") == 0 &&
            number_read(map->values[i], &value) > 0 && value < min)
            yaml_problem(loaded->problems, loaded->document, place_of(loaded, map)->keys[i],
                "raise it, remove it, or lower drain_timeout_ms",
                "kafka.consumer must not set 'max.poll.interval.ms' under drain_timeout_ms and 10 "
                "s, %llu: the group does not wait longer for a worker that gives partitions back",
                (unsigned long long)min);
}

static void check_kafka(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->kafka.instance_id[0] != 0 && !is_kafka_name(s->kafka.instance_id, INSTANCE_ID_MAX))
        ADD(loaded, &s->kafka.instance_id, "use letters, digits, '.', '_' and '-', at most 240",
            "'%.80s' cannot be the name of a group's member", s->kafka.instance_id);
    check_kafka_keys(loaded, &s->kafka.consumer, "kafka.consumer");
    check_kafka_keys(loaded, &s->kafka.producer, "kafka.producer");
    check_poll_interval(loaded);
    const char *why = "more requests under way can change the order of results";
    check_producer_max(loaded, "max.in.flight", 5, why);
    check_producer_max(loaded, "max.in.flight.requests.per.connection", 5, why);
}

static void check_timeouts(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->limits.timeout_ms < s->limits.timeout_min_ms)
        ADD(loaded, &s->limits.timeout_ms, "raise it, or lower limits.timeout_min_ms",
            "limits.timeout_ms is less than limits.timeout_min_ms");
    if (s->limits.timeout_ms > s->limits.timeout_max_ms)
        ADD(loaded, &s->limits.timeout_ms, "lower it, or raise limits.timeout_max_ms",
            "limits.timeout_ms is more than limits.timeout_max_ms");
}

static void check_limits(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->limits.bytes_in_flight < s->limits.message_bytes)
        ADD(loaded, &s->limits.bytes_in_flight, "raise it to several messages",
            "limits.bytes_in_flight is less than one message of limits.message_bytes");
    for (size_t i = 0; i < s->kafka.producer.count; i++) {
        uint64_t max;
        if (strcmp(s->kafka.producer.keys[i], "message.max.bytes") == 0 &&
            number_read(s->kafka.producer.values[i], &max) > 0 && s->limits.result_bytes > max)
            ADD(loaded, &s->limits.result_bytes, "lower it, or raise message.max.bytes",
                "limits.result_bytes is more than message.max.bytes of kafka.producer");
    }
}

/* A path is appended, so nothing may follow the URL's own. It is not shown, because it may contain
 * a password. */
static bool is_base_url(const char *url) {
    bool is_http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    return is_http && strpbrk(url, "?# \t\r\n") == NULL;
}

static void check_blobs(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    bool has_dir = s->blobs.dir[0] != 0, has_url = s->blobs.url[0] != 0;
    if (has_dir && has_url)
        ADD(loaded, &s->blobs.url, "remove one of them",
            "the blob store is either blobs.dir or blobs.url");
    if (has_url && !is_base_url(s->blobs.url))
        ADD(loaded, &s->blobs.url, "write it as https://host/path",
            "blobs.url is not an http or https URL that a path can follow");
    if (has_url && s->blobs.cache_dir[0] == 0)
        ADD(loaded, &s->blobs.url, "set blobs.cache_dir to a folder on a local disk",
            "blobs.url needs a folder for what is fetched");
    if (s->results.inline_max_bytes > 0 && !has_dir && !has_url)
        ADD(loaded, &s->results.inline_max_bytes, "set blobs.dir or blobs.url",
            "results.inline_max_bytes needs a blob store");
}

static void check_tracing(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->tracing.otlp_url[0] != 0 && !is_base_url(s->tracing.otlp_url))
        ADD(loaded, &s->tracing.otlp_url, "write it as http://collector:4318",
            "tracing.otlp_url is not an http or https URL that a path can follow");
}

static void check_retry(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    if (s->retry.base_ms > s->retry.max_ms)
        ADD(loaded, &s->retry.base_ms, "lower it, or raise retry.max_ms",
            "retry.base_ms is more than retry.max_ms");
}

static void check_http(const struct loaded *loaded) {
    const struct settings *s = loaded->settings;
    struct address address;
    if (s->http.listen[0] != 0 && !address_read(s->http.listen, &address))
        ADD(loaded, &s->http.listen, "write it as 127.0.0.1:9400 or [::1]:9400",
            "'%.80s' is not a host with a port", s->http.listen);
    if (s->http.token_file[0] != 0 && s->http.listen[0] == 0)
        ADD(loaded, &s->http.token_file, "set http.listen, or remove http.token_file",
            "http.token_file has no effect while http.listen is empty");
}

void rules_check(const struct loaded *loaded) {
    check_devices(loaded);
    check_driver(loaded);
    check_broker(loaded);
    check_topics(loaded);
    check_kafka(loaded);
    check_limits(loaded);
    check_timeouts(loaded);
    check_retry(loaded);
    check_blobs(loaded);
    check_tracing(loaded);
    check_http(loaded);
}

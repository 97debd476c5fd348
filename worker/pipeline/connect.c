#include "pipeline/connect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/consumer.h"
#include "broker/embedded.h"
#include "broker/file_sink.h"
#include "broker/file_source.h"
#include "broker/preflight.h"
#include "broker/producer.h"
#include "broker/transaction.h"

enum {
    SERVERS_TEXT_MAX = 4096,
    INSTANCE_NAME_SIZE = 256,
    HOST_NAME_SIZE = 128,
    TRANSACTIONAL_ID_SIZE = 1024,
    BROKER_TIMEOUT_MS = 15000,
    PREFLIGHT_TIMEOUT_MS = 5000,
    FETCH_AHEAD_SHARE = 4, /* of limits.bytes_in_flight, in addition to it */
    /* Kafka answers a fetch when a message comes. The embedded broker looks again when the fetch
     * has waited for so long. */
    EMBEDDED_FETCH_WAIT_MS = 2,
    EMBEDDED_TOPICS_MS = 1000,
    EMBEDDED_COMMIT_MS = 50, /* at most: who sends jobs waits for commits */
    ADDRESS_TRIES = 200      /* 10 s, 50 ms apart */
};

/* Logs events that the clients recover from. Other errors are returned to the run. */
static void on_kafka_event(
    void *context, enum log_level level, const char *what, const struct error *err) {
    if (err != NULL) log_error_event(level, LOG_EVENT("kafka"), what, err);
    else log_event(level, LOG_EVENT("kafka"), "%s", what);
}

static struct kafka_options kafka_options(
    const char *bootstrap_servers, const struct string_map *map) {
    return (struct kafka_options){.bootstrap_servers = bootstrap_servers,
        .setting_count = map->count,
        .setting_keys = map->keys,
        .setting_values = map->values,
        .on_event = on_kafka_event};
}

/*
 * All topics that the configuration names, in an array that the caller frees; NULL when memory is
 * short.
 */
static char **list_topics(const struct settings *settings, size_t *count) {
    const struct string_list *jobs = &settings->topics.jobs, *others = &settings->topics.reply_to;
    char **topics = calloc(jobs->count + others->count + 5, sizeof topics[0]);
    if (topics == NULL) return NULL;
    *count = 0;
    for (size_t i = 0; i < jobs->count; i++) topics[(*count)++] = jobs->items[i];
    for (size_t i = 0; i < others->count; i++) topics[(*count)++] = others->items[i];
    topics[(*count)++] = settings->topics.results;
    topics[(*count)++] = settings->topics.dead_letters;
    topics[(*count)++] = settings->topics.telemetry;
    if (settings->topics.control[0] != 0) topics[(*count)++] = settings->topics.control;
    if (settings->topics.progress[0] != 0) topics[(*count)++] = settings->topics.progress;
    return topics;
}

/* Where the embedded broker's address is written and found, to be freed; NULL when memory is short.
 */
static char *find_address_file(const struct settings *settings) {
    if (settings->embedded.address_file[0] != 0) return strdup(settings->embedded.address_file);
    char *folder = settings_state_dir(settings), *ret = NULL;
    if (folder == NULL || asprintf(&ret, "%s/broker.address", folder) < 0) ret = NULL;
    free(folder);
    return ret;
}

/* Nobody asked for the file in state.dir: without that folder there is none. */
static bool is_address_wanted(const struct settings *settings) {
    if (settings->embedded.address_file[0] != 0) return true;
    char *folder = settings_state_dir(settings);
    bool ret = folder != NULL && access(folder, W_OK | X_OK) == 0;
    free(folder);
    return ret;
}

/* The embedded broker makes no topic on demand, so all topics are made at the start. */
enum err connect_start_broker(
    const struct settings *settings, struct embedded **ret, struct error *err) {
    *ret = NULL;
    if (settings->broker != BROKER_EMBEDDED) return ERR_OK;
    struct embedded_options options = {.job_topic_count = settings->topics.jobs.count,
        .group = settings->kafka.group,
        .partitions = settings->embedded.partitions};
    char *address_file = find_address_file(settings);
    char **topics = list_topics(settings, &options.topic_count);
    enum err code = ERR_NO_MEMORY;
    if (topics == NULL || address_file == NULL) {
        error_set(err, code, 0, "give the process more memory", "no memory for topics");
    } else {
        options.topics = topics;
        options.address_file = is_address_wanted(settings) ? address_file : NULL;
        code = embedded_create(&options, ret, err);
    }
    free(topics);
    free(address_file);
    if (code == ERR_OK)
        log_line(LOG_INFO, "embedded broker at %s", embedded_bootstrap_servers(*ret));
    return code;
}

/* The embedded broker is there. */
static int topics_timeout_ms(const struct settings *settings) {
    return settings->broker == BROKER_EMBEDDED ? EMBEDDED_TOPICS_MS : 0;
}

/*
 * Telemetry has a producer of its own, so that it is not part of transactions and does not wait for
 * them.
 */
static enum err open_telemetry(
    const struct settings *settings, const char *servers, struct sink **ret, struct error *err) {
    if (settings->telemetry.interval_ms == 0) return ERR_OK;
    const struct producer_options options = {
        .kafka = kafka_options(servers, &settings->kafka.producer),
        .telemetry_topic = settings->topics.telemetry,
        .topics_timeout_ms = topics_timeout_ms(settings)};
    return producer_create(&options, ret, err);
}

/* Telemetry does not wait for what long jobs show, nor that for telemetry. */
static enum err open_feed(
    const struct settings *settings, const char *servers, struct sink **ret, struct error *err) {
    if (settings->topics.progress[0] == 0) return ERR_OK;
    const struct producer_options options = {
        .kafka = kafka_options(servers, &settings->kafka.producer),
        .progress_topic = settings->topics.progress,
        .topics_timeout_ms = topics_timeout_ms(settings)};
    return producer_create(&options, ret, err);
}

static enum err open_reader(const struct settings *settings, const char *servers, const char *topic,
    uint64_t from_unix_ms, int timeout_ms, struct reader **ret, struct error *err) {
    /*
     * The embedded broker cannot look up times, and would answer with the end. Its topics are
     * short, so read all of them.
     */
    if (settings->broker == BROKER_EMBEDDED && from_unix_ms != READER_FROM_NOW)
        from_unix_ms = READER_FROM_BEGINNING;
    const struct kafka_options options = kafka_options(servers, &settings->kafka.consumer);
    return reader_create(&options, topic, from_unix_ms, timeout_ms, ret, err);
}

/* Cancels older than cancels.ttl_ms have no meaning any more. Brokers that have gone away since
 * they accepted the worker are waited for by the reader, as the other clients do. */
static enum err open_control(const struct settings *settings, const char *servers, bool are_away,
    struct reader **ret, struct error *err) {
    const char *topic = settings->topics.control;
    uint64_t from_unix_ms = clock_unix_ms() - settings->cancels.ttl_ms;
    if (topic[0] == 0) return ERR_OK;
    if (!are_away) {
        enum err code =
            open_reader(settings, servers, topic, from_unix_ms, BROKER_TIMEOUT_MS, ret, err);
        if (code == ERR_OK || !reader_missed_brokers(err)) return code;
    }
    return open_reader(settings, servers, topic, from_unix_ms, 0, ret, err);
}

/*
 * Executors of several devices share a configuration, but each has a name of its own. "" stays "".
 */
static void name_instance(const struct settings *settings, uint32_t device,
    const struct membership *membership, char text[static INSTANCE_NAME_SIZE]) {
    const char *id = settings->kafka.instance_id;
    if (id[0] == 0) id = membership->instance_id;
    text[0] = 0;
    if (id[0] != 0) snprintf(text, INSTANCE_NAME_SIZE, "%s-gpu%" PRIu32, id, device);
}

/* A section of the Kafka settings, and the topics that it is used for. */
struct side {
    struct preflight_options options;
    size_t topic_count, result_topic_count; /* those for results come first */
    uint64_t result_bytes;
    char *const *topics;
};

enum { CONSUMER_SIDE, PRODUCER_SIDE, SIDE_COUNT };

static struct side side_of(
    const struct settings *settings, const char *section, const struct string_map *map) {
    return (struct side){.options = {.kafka = kafka_options(settings->kafka.bootstrap_servers, map),
                             .section = section,
                             .timeout_ms = PREFLIGHT_TIMEOUT_MS}};
}

static void list_sides(const struct settings *settings, struct side ret[static SIDE_COUNT]) {
    ret[CONSUMER_SIDE] = side_of(settings, "kafka.consumer", &settings->kafka.consumer);
    ret[PRODUCER_SIDE] = side_of(settings, "kafka.producer", &settings->kafka.producer);
}

/*
 * Fails if the brokers refuse the worker. If no broker answers yet, the clients will wait for one.
 */
static enum err introduce(const struct settings *settings, bool *are_away, struct error *err) {
    *are_away = false;
    if (settings->broker == BROKER_EMBEDDED) return ERR_OK;
    struct side sides[SIDE_COUNT];
    enum err code = ERR_OK;
    list_sides(settings, sides);
    for (int i = 0; i < SIDE_COUNT && code == ERR_OK; i++) code = preflight(&sides[i].options, err);
    if (code != ERR_TIMEOUT) return code;
    log_error(LOG_WARN, "the brokers do not answer yet; waiting for them", err);
    *are_away = true;
    return ERR_OK;
}

/*
 * First asks the brokers without a topic: if they refuse the worker, that is one problem, not one
 * for each topic.
 */
static enum err check_side(
    struct side *side, void (*on_problem)(void *context, const struct error *err), void *context) {
    struct error err;
    enum err ret = preflight(&side->options, &err);
    if (ret != ERR_OK) on_problem(context, &err);
    if (ret != ERR_OK) return ret;
    for (size_t i = 0; i < side->topic_count; i++) {
        side->options.topic = side->topics[i];
        side->options.result_bytes = i < side->result_topic_count ? side->result_bytes : 0;
        enum err code = preflight(&side->options, &err);
        if (code == ERR_OK) continue;
        on_problem(context, &err);
        ret = code;
    }
    return ret;
}

enum err connect_check(const struct settings *settings,
    void (*on_problem)(void *context, const struct error *err), void *context) {
    if (settings->broker == BROKER_EMBEDDED) return ERR_OK;
    size_t topic_count, job_count = settings->topics.jobs.count;
    char **topics = list_topics(settings, &topic_count);
    if (topics == NULL) return ERR_NO_MEMORY;
    struct side sides[SIDE_COUNT];
    list_sides(settings, sides);
    sides[CONSUMER_SIDE].topic_count = job_count;
    sides[CONSUMER_SIDE].topics = topics;
    sides[PRODUCER_SIDE].topic_count = topic_count - job_count;
    sides[PRODUCER_SIDE].topics = topics + job_count;
    sides[PRODUCER_SIDE].result_topic_count = settings->topics.reply_to.count + 1;
    sides[PRODUCER_SIDE].result_bytes = settings->limits.result_bytes;
    enum err ret = ERR_OK;
    for (int i = 0; i < SIDE_COUNT && ret != ERR_TIMEOUT; i++) {
        enum err code = check_side(&sides[i], on_problem, context);
        if (code != ERR_OK) ret = code;
    }
    free(topics);
    return ret;
}

/*
 * Without a configured name, the transactional id is made of the machine's name and the device,
 * which a restart finds again.
 */
static void name_transactions(const struct settings *settings, uint32_t device,
    const char *instance, char text[static TRANSACTIONAL_ID_SIZE]) {
    char host[HOST_NAME_SIZE] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
    if (instance[0] != 0)
        snprintf(text, TRANSACTIONAL_ID_SIZE, "%s-%s", settings->kafka.group, instance);
    else
        snprintf(
            text, TRANSACTIONAL_ID_SIZE, "%s-%s-gpu%" PRIu32, settings->kafka.group, host, device);
}

uint32_t connect_transaction_messages(const struct settings *settings) {
    return settings->limits.jobs_in_flight / 2 + 1;
}

/* Opens the sink. With `delivery: exactly_once`, it also commits the offsets of the source. */
static enum err open_sink(const struct settings *settings, uint32_t device, const char *servers,
    const char *instance, struct source *source, struct sink **ret, struct error *err) {
    char id[TRANSACTIONAL_ID_SIZE];
    struct transaction_options options = {
        .producer = {.kafka = kafka_options(servers, &settings->kafka.producer),
            .results_topic = settings->topics.results,
            .dead_letters_topic = settings->topics.dead_letters,
            .topics_timeout_ms = topics_timeout_ms(settings)},
        .source = source,
        .commit_interval_ms = settings->commit_interval_ms,
        .messages_max = connect_transaction_messages(settings)};
    if (settings->delivery == AT_LEAST_ONCE) return producer_create(&options.producer, ret, err);
    name_transactions(settings, device, instance, id);
    options.producer.transactional_id = id;
    return transaction_create(&options, ret, err);
}

/* The embedded broker's only executor is in no group, which it would join after seconds. */
static void fit_embedded(const struct settings *settings, struct consumer_options *consumer) {
    if (settings->broker != BROKER_EMBEDDED) return;
    consumer->instance_id = "";
    consumer->partitions = settings->embedded.partitions;
    consumer->fetch_wait_ms = EMBEDDED_FETCH_WAIT_MS;
    if (consumer->commit_interval_ms > EMBEDDED_COMMIT_MS)
        consumer->commit_interval_ms = EMBEDDED_COMMIT_MS;
}

enum err connect_kafka(const struct settings *settings, uint32_t device,
    const struct membership *membership, const char *embedded, struct connection *ret,
    struct error *err) {
    *ret = (struct connection){0};
    bool are_away;
    enum err code = introduce(settings, &are_away, err);
    if (code == ERR_OK && embedded == NULL)
        code = connect_start_broker(settings, &ret->embedded, err);
    if (code != ERR_OK) return code;
    const char *servers = settings->kafka.bootstrap_servers;
    if (embedded != NULL) servers = embedded;
    else if (ret->embedded != NULL) servers = embedded_bootstrap_servers(ret->embedded);
    char instance[INSTANCE_NAME_SIZE];
    name_instance(settings, device, membership, instance);
    struct consumer_options consumer = {.kafka = kafka_options(servers, &settings->kafka.consumer),
        .group = settings->kafka.group,
        .instance_id = instance,
        .owner = membership->owner,
        .fetch_ahead_bytes = settings->limits.bytes_in_flight / FETCH_AHEAD_SHARE,
        .topic_count = settings->topics.jobs.count,
        .topics = settings->topics.jobs.items,
        .commits_elsewhere = settings->delivery == EXACTLY_ONCE,
        .commit_interval_ms = settings->commit_interval_ms,
        .drain_timeout_ms = settings->drain_timeout_ms,
        .poll_interval_ms = settings_poll_interval_ms(settings)};
    fit_embedded(settings, &consumer);
    code = consumer_create(&consumer, &ret->source, err);
    if (code == ERR_OK)
        code = open_sink(settings, device, servers, instance, ret->source, &ret->sink, err);
    if (code == ERR_OK) code = open_telemetry(settings, servers, &ret->telemetry, err);
    if (code == ERR_OK) code = open_feed(settings, servers, &ret->feed, err);
    if (code == ERR_OK) code = open_control(settings, servers, are_away, &ret->control, err);
    if (code == ERR_OK) return ERR_OK;
    reader_destroy(ret->control);
    sink_destroy(ret->feed);
    sink_destroy(ret->telemetry);
    sink_destroy(ret->sink);
    source_destroy(ret->source);
    connection_fini(ret);
    return code;
}

/* What an interrupted run has left would be lost without a word. */
static void say_replaced(const struct file_paths *paths) {
    const char *const all[] = {
        paths->results, paths->dead_letters, paths->telemetry, paths->progress};
    struct stat file;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL && strcmp(all[i], "-") != 0 && stat(all[i], &file) == 0 &&
            S_ISREG(file.st_mode) && file.st_size > 0)
            log_line(LOG_WARN, "%s had %lld bytes of an earlier run, which are replaced", all[i],
                (long long)file.st_size);
}

/* A later process appends to what an earlier one has written. */
static enum err open_file(const char *path, bool is_resumed, struct sink **ret, struct error *err) {
    if (path == NULL) return ERR_OK;
    return is_resumed ? file_sink_append(path, ret, err)
                      : file_sink_create(path, NULL, NULL, ret, err);
}

enum err connect_files(const struct settings *settings, const struct file_paths *paths,
    void *progress_room, struct connection *ret, struct error *err) {
    struct file_lengths lengths;
    bool is_resumed = false;
    enum err code = ERR_OK;
    *ret = (struct connection){0};
    if (progress_room != NULL) {
        code = file_progress_create(progress_room, &ret->progress, err);
        is_resumed = code == ERR_OK && file_progress_is_resumed(ret->progress, &lengths);
    }
    if (code == ERR_OK)
        code = file_source_create(
            paths->jobs, settings->limits.message_bytes, ret->progress, &ret->source, err);
    if (code == ERR_OK && !is_resumed) say_replaced(paths);
    if (code == ERR_OK)
        code =
            file_sink_create(paths->results, paths->dead_letters, ret->progress, &ret->sink, err);
    if (code == ERR_OK) code = open_file(paths->telemetry, is_resumed, &ret->telemetry, err);
    if (code == ERR_OK) code = open_file(paths->progress, is_resumed, &ret->feed, err);
    if (code == ERR_OK) return ERR_OK;
    sink_destroy(ret->telemetry);
    sink_destroy(ret->sink);
    source_destroy(ret->source);
    connection_fini(ret);
    return code;
}

/* Reads the address of another process's embedded broker, which may be just starting. */
static enum err read_address_file(const char *path, char *address, size_t size, struct error *err) {
    const struct timespec pause = {.tv_nsec = 50 * 1000000};
    bool is_read = false;
    for (int tries = 0; !is_read && tries < ADDRESS_TRIES; tries++) {
        if (tries > 0) nanosleep(&pause, NULL);
        is_read = embedded_read_address(path, address, size);
    }
    if (is_read) return ERR_OK;
    return error_set(err, ERR_BROKER, 0,
        "start the worker with the same configuration, or set embedded.address_file to a path that "
        "both can reach",
        "'%s' does not contain the embedded broker's address", path);
}

static enum err find_servers(
    const struct settings *settings, char *servers, size_t size, struct error *err) {
    if (settings->broker == BROKER_EMBEDDED) {
        char *path = find_address_file(settings);
        enum err code = path != NULL ? read_address_file(path, servers, size, err)
                                     : error_no_memory(err, "no memory for a path");
        free(path);
        return code;
    }
    snprintf(servers, size, "%s", settings->kafka.bootstrap_servers);
    return ERR_OK;
}

/* The embedded broker would make a topic that is asked for, and nothing would ever come of it. */
enum err connect_check_topic(
    const struct settings *settings, const char *topic, struct error *err) {
    if (settings->broker != BROKER_EMBEDDED) return ERR_OK;
    size_t count;
    bool is_known = false;
    char **topics = list_topics(settings, &count);
    if (topics == NULL) return error_no_memory(err, "no memory for topics");
    for (size_t i = 0; i < count && !is_known; i++) is_known = strcmp(topics[i], topic) == 0;
    free(topics);
    if (is_known) return ERR_OK;
    return error_set(err, ERR_BROKER, 0, "name one of the configuration's topics",
        "the embedded broker has no topic '%s'", topic);
}

enum err connect_producer(const struct settings *settings, struct sink **ret, struct error *err) {
    char servers[SERVERS_TEXT_MAX];
    enum err code = find_servers(settings, servers, sizeof servers, err);
    if (code != ERR_OK) return code;
    const struct producer_options options = {
        .kafka = kafka_options(servers, &settings->kafka.producer),
        .results_topic = settings->topics.results,
        .dead_letters_topic = settings->topics.dead_letters,
        .topics_timeout_ms = topics_timeout_ms(settings)};
    return producer_create(&options, ret, err);
}

enum err connect_reader(const struct settings *settings, const char *topic, uint64_t from_unix_ms,
    struct reader **ret, struct error *err) {
    char servers[SERVERS_TEXT_MAX];
    enum err code = connect_check_topic(settings, topic, err);
    if (code == ERR_OK) code = find_servers(settings, servers, sizeof servers, err);
    if (code != ERR_OK) return code;
    return open_reader(settings, servers, topic, from_unix_ms, BROKER_TIMEOUT_MS, ret, err);
}

enum err connect_committed(const struct settings *settings, const struct position *position,
    struct committed *ret, struct error *err) {
    char servers[SERVERS_TEXT_MAX];
    enum err code = find_servers(settings, servers, sizeof servers, err);
    if (code != ERR_OK) return code;
    const struct kafka_options options = kafka_options(servers, &settings->kafka.consumer);
    return committed_read(&options, settings->kafka.group, position, BROKER_TIMEOUT_MS, ret, err);
}

void connection_fini(struct connection *connection) {
    embedded_destroy(connection->embedded);
    file_progress_destroy(connection->progress);
    *connection = (struct connection){0};
}

#include "broker/client.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/crew.h"

#define QUIET_NS 10000000000ull
#define DESTROY_MS 2000

static const char FIX_KEY[] = "librdkafka's CONFIGURATION.md lists all keys and values";
static const char FIX_BUILD[] =
    "use a librdkafka that is built with it: `gpu-worker version` names the one in use";

enum err client_conf_set(rd_kafka_conf_t *conf, const char *section, const char *key,
    const char *value, struct error *err) {
    char why[256];
    if (rd_kafka_conf_set(conf, key, value, why, sizeof why) == RD_KAFKA_CONF_OK) return ERR_OK;
    bool is_left_out = strstr(why, "not supported in this build") != NULL;
    return error_set(
        err, ERR_CONFIG, 0, is_left_out ? FIX_BUILD : FIX_KEY, "%s.%s: %s", section, key, why);
}

uint64_t client_conf_number(const rd_kafka_conf_t *conf, const char *key) {
    char text[32];
    size_t size = sizeof text;
    return rd_kafka_conf_get(conf, key, text, &size) == RD_KAFKA_CONF_OK ? strtoull(text, NULL, 10)
                                                                         : 0;
}

bool client_read_conf(rd_kafka_t *client, const char *key, char *ret, size_t size) {
    bool is_set = rd_kafka_conf_get(rd_kafka_conf(client), key, ret, &size) == RD_KAFKA_CONF_OK;
    if (!is_set) ret[0] = 0;
    return is_set;
}

static enum err set_all(rd_kafka_conf_t *conf, const char *section,
    const struct client_setting *settings, struct error *err) {
    enum err code = ERR_OK;
    for (; settings->key != NULL && code == ERR_OK; settings++)
        code = client_conf_set(conf, section, settings->key, settings->value, err);
    return code;
}

enum err client_conf_create(const struct kafka_options *options, const char *section,
    const struct client_setting *defaults, const struct client_setting *required,
    rd_kafka_conf_t **ret, struct error *err) {
    if (options->bootstrap_servers == NULL || options->bootstrap_servers[0] == 0)
        return error_set(err, ERR_CONFIG, 0, "set it to host:port of one broker or more",
            "kafka.bootstrap_servers is empty");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    enum err code = set_all(conf, section, defaults, err);
    for (size_t i = 0; i < options->setting_count && code == ERR_OK; i++)
        code = client_conf_set(
            conf, section, options->setting_keys[i], options->setting_values[i], err);
    if (code == ERR_OK) code = set_all(conf, section, required, err);
    if (code == ERR_OK)
        code = client_conf_set(conf, "kafka", "bootstrap.servers", options->bootstrap_servers, err);
    if (code != ERR_OK) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    *ret = conf;
    return ERR_OK;
}

enum err client_create(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *section,
    rd_kafka_t **ret, struct error *err) {
    char why[256];
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (client == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, ERR_CONFIG, 0, FIX_KEY, "%s: %s", section, why);
    }
    *ret = client;
    return ERR_OK;
}

struct farewell {
    pthread_mutex_t lock;
    pthread_cond_t is_over_now;
    rd_kafka_t *client;
    bool is_over;
};

static void farewell_run(void *context, uint32_t index) {
    (void)index;
    struct farewell *farewell = context;
    rd_kafka_destroy_flags(farewell->client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    pthread_mutex_lock(&farewell->lock);
    farewell->is_over = true;
    pthread_cond_signal(&farewell->is_over_now);
    pthread_mutex_unlock(&farewell->lock);
}

static bool farewell_wait(struct farewell *farewell) {
    uint64_t until_ns = clock_ns_in(DESTROY_MS);
    pthread_mutex_lock(&farewell->lock);
    while (!farewell->is_over &&
           condition_wait_until(&farewell->is_over_now, &farewell->lock, until_ns))
        continue;
    bool is_over = farewell->is_over;
    pthread_mutex_unlock(&farewell->lock);
    return is_over;
}

void client_destroy(rd_kafka_t *client) {
    struct crew *crew = NULL;
    struct error ignored;
    struct farewell *farewell = client != NULL ? calloc(1, sizeof *farewell) : NULL;
    if (farewell == NULL) return;
    farewell->client = client;
    pthread_mutex_init(&farewell->lock, NULL);
    pthread_cond_init(&farewell->is_over_now, NULL);
    struct crew_options options = {
        .name = "kafka-end", .count = 1, .run = farewell_run, .context = farewell};
    if (crew_start(&options, &crew, &ignored) == ERR_OK && !farewell_wait(farewell))
        return; /* the thread still needs what it has */
    crew_join(&crew);
    pthread_cond_destroy(&farewell->is_over_now);
    pthread_mutex_destroy(&farewell->lock);
    free(farewell);
}

static void drop_log(const rd_kafka_t *client, int level, const char *facility, const char *line) {}

rd_kafka_t *client_create_beside(rd_kafka_t *member) {
    static const struct client_setting settings[] = {
        {"isolation.level", "read_uncommitted"}, {"log.queue", "false"}, {NULL, NULL}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(rd_kafka_conf(member));
    for (const struct client_setting *s = settings; s->key != NULL; s++)
        (void)!rd_kafka_conf_set(conf, s->key, s->value, why, sizeof why);
    rd_kafka_conf_set_rebalance_cb(conf, NULL);
    rd_kafka_conf_set_error_cb(conf, NULL);
    rd_kafka_conf_set_log_cb(conf, drop_log);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (client == NULL) rd_kafka_conf_destroy(conf);
    return client;
}

static bool is_about_connections(rd_kafka_resp_err_t native) {
    switch (native) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: return true;
    default: return false;
    }
}

static const char *fix_of(rd_kafka_resp_err_t native) {
    switch (native) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        return "create the topic, or give the worker rights to it; the worker goes on trying";
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        return "check the user, password and certificates; the worker goes on trying";
    default: return "check that the brokers run and can be reached; the worker goes on trying";
    }
}

void client_report(struct client_events *events, rd_kafka_resp_err_t native, const char *reason) {
    if (events->on_event == NULL) return;
    bool is_outage = native == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
    if (is_about_connections(native)) {
        uint64_t now_ns = clock_ns(), *quiet_until_ns = &events->quiet_until_ns[is_outage];
        if (now_ns < *quiet_until_ns) return;
        *quiet_until_ns = now_ns + QUIET_NS;
    }
    struct error err;
    error_set(
        &err, ERR_BROKER, native, fix_of(native), "%s: %s", rd_kafka_err2name(native), reason);
    events->on_event(events->context, is_outage ? LOG_ERROR : LOG_WARN, events->name, &err);
}

void client_say(const struct client_events *events, enum log_level level, const char *format, ...) {
    if (events->on_event == NULL) return;
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "%s ", events->name);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    events->on_event(events->context, level, text, NULL);
}

static const char *fix_of_loss(rd_kafka_resp_err_t native) {
    switch (native) {
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
        return "give each worker of the group a kafka.instance_id of its own";
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        return "give the worker's user rights to the group and its topics; no job is lost";
    default: return "correct what the message says, then start the worker again; no job is lost";
    }
}

enum err client_lost(struct error *err, rd_kafka_resp_err_t native, const char *reason) {
    return error_set(
        err, ERR_BROKER, native, fix_of_loss(native), "%s: %s", rd_kafka_err2name(native), reason);
}

bool client_has_met_broker(rd_kafka_t *client) {
    char *cluster = rd_kafka_clusterid(client, 0); /* NULL unless a broker has told it */
    if (cluster != NULL) rd_kafka_mem_free(client, cluster);
    return cluster != NULL;
}

static uint64_t published_unix_ms(const rd_kafka_message_t *message) {
    rd_kafka_timestamp_type_t type;
    int64_t unix_ms = rd_kafka_message_timestamp(message, &type);
    return type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && unix_ms > 0 ? (uint64_t)unix_ms : 0;
}

bool client_is_final(rd_kafka_resp_err_t code) {
    switch (code) {
    case RD_KAFKA_RESP_ERR__FATAL:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: /* the settings ask for the run to end */
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return true;
    default: return false;
    }
}

static void destroy_message(void *message) {
    rd_kafka_message_destroy(message);
}

static struct delivery *lend(rd_kafka_message_t *message, size_t headers_max) {
    rd_kafka_headers_t *list;
    size_t count = 0;
    if (rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR)
        count = rd_kafka_header_cnt(list);
    bool is_cut = count > headers_max;
    if (is_cut) count = headers_max;
    struct header *headers = count > 0 ? calloc(count, sizeof *headers) : NULL;
    if (headers == NULL && count > 0) return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        const void *value;
        size_t size;
        if (rd_kafka_header_get_all(list, i, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        headers[i] = (struct header){
            .name = slice_of_text(name), .value = slice_of(value, value != NULL ? size : 0)};
    }
    struct delivery view = {.position = {.published_unix_ms = published_unix_ms(message)},
        .received_ns = clock_ns(),
        .payload = slice_of(message->payload, message->len),
        .has_key = message->key != NULL,
        .key = slice_of(message->key, message->key_len),
        .header_count = count,
        .headers = headers,
        .is_cut = is_cut};
    const struct loan loan = {
        .end = destroy_message, .lender = message, .holds_bytes = SIZE_MAX /* a whole fetch */};
    struct delivery *lent = delivery_lend(&view, loan);
    free(headers);
    return lent;
}

struct delivery *client_lend_message(rd_kafka_message_t *message, size_t headers_max) {
    struct delivery *lent = lend(message, headers_max);
    if (lent == NULL) {
        rd_kafka_message_destroy(message);
    } else if (lent->is_cut && !delivery_keep(lent)) {
        delivery_destroy(lent);
        return NULL;
    }
    return lent;
}

/* ---- its waits ---- */

/* The C library's types are those of POSIX under other names. */
_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t must be a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t must be a pthread_cond_t");

static uint64_t left_ns(const struct timespec *until) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    int64_t seconds = (int64_t)until->tv_sec - (int64_t)now.tv_sec;
    int64_t ns = seconds * 1000000000 + (until->tv_nsec - now.tv_nsec);
    return ns > 0 ? (uint64_t)ns : 0;
}

/*
 * librdkafka's waits end by the wall clock. If the clock is set back by a day, a wait would take a
 * day longer, in librdkafka's threads and in callers that poll. So this function replaces the C
 * library's: it turns what is left of a wait into a wait by the monotonic clock.
 */
int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    bool is_in_time = condition_wait_until(
        (pthread_cond_t *)condition, (pthread_mutex_t *)mutex, clock_ns() + left_ns(until));
    return is_in_time ? thrd_success : thrd_timedout;
}

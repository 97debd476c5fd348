#include "broker/embedded.h"

#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/file.h"
#include "broker/gate.h"

enum { ADDRESS_BYTES = 1024 };

struct embedded {
    rd_kafka_t *client; /* only there to run the cluster */
    rd_kafka_mock_cluster_t *cluster;
    struct gate *gate;
    char *address_file; /* NULL: none */
};

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *line) {}

static enum err start(struct embedded *embedded, struct error *err) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, on_log);
    embedded->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (embedded->client == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, ERR_BROKER, 0, "raise the limits on threads and open files",
            "starting the embedded broker: %s", why);
    }
    embedded->cluster = rd_kafka_mock_cluster_new(embedded->client, 1);
    if (embedded->cluster == NULL)
        return error_set(err, ERR_BROKER, 0, "check that loopback sockets can be opened",
            "the embedded broker could not be started");
    return ERR_OK;
}

static enum err create_topics(
    struct embedded *embedded, const struct embedded_options *options, struct error *err) {
    for (size_t i = 0; i < options->topic_count; i++) {
        rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(
            embedded->cluster, options->topics[i], (int)options->partitions, 1);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            return error_set(err, ERR_BROKER, code,
                "give the topic a name that Kafka allows, or lower embedded.partitions",
                "creating %s with %u partitions in the embedded broker: %s", options->topics[i],
                (unsigned)options->partitions, rd_kafka_err2str(code));
    }
    return ERR_OK;
}

static enum err open_gate(
    struct embedded *embedded, const struct embedded_options *options, struct error *err) {
    const struct gate_options gate = {.cluster = embedded->cluster,
        .group = options->group,
        .topic_count = options->job_topic_count,
        .topics = options->topics,
        .partitions = options->partitions};
    return gate_open(&gate, &embedded->gate, err);
}

/* "host:port" of each broker, with commas between. */
static bool is_address(char *text) {
    struct address address;
    bool is_any = false;
    for (char *left = text, *one; (one = strsep(&left, ",")) != NULL; is_any = true)
        if (!address_read(one, &address)) return false;
    return is_any;
}

bool embedded_read_address(const char *path, char *address, size_t size) {
    struct error why;
    char *text;
    size_t bytes;
    if (file_read(path, size, &text, &bytes, &why) != ERR_OK) return false;
    char *end = memchr(text, '\n', bytes);
    bool is_read = end != NULL && end == text + bytes - 1;
    if (is_read) {
        *end = 0;
        memcpy(address, text, bytes);
        is_read = is_address(text);
    }
    free(text);
    return is_read;
}

bool embedded_may_write(const char *path) {
    char address[ADDRESS_BYTES];
    struct stat file;
    return lstat(path, &file) != 0 || (S_ISREG(file.st_mode) && file.st_size == 0) ||
           embedded_read_address(path, address, sizeof address);
}

static enum err write_address(struct embedded *embedded, const char *path, struct error *err) {
    char line[ADDRESS_BYTES];
    if (path == NULL || path[0] == 0) return ERR_OK;
    if (!embedded_may_write(path))
        return error_set(
            err, ERR_IO, 0, EMBEDDED_FIX_FILE, "%s holds something else than an address", path);
    snprintf(line, sizeof line, "%s\n", embedded_bootstrap_servers(embedded));
    if (!file_replace(path, 0644, slice_of_text(line)))
        return error_set(err, ERR_IO, errno,
            "give embedded.address_file a path that can be written",
            "writing the embedded broker's address to %s: %s", path, strerror(errno));
    embedded->address_file = strdup(path);
    return ERR_OK;
}

/* Another one may have put its address there since. */
static void remove_address(const struct embedded *embedded) {
    char address[ADDRESS_BYTES];
    if (embedded->address_file != NULL &&
        embedded_read_address(embedded->address_file, address, sizeof address) &&
        strcmp(address, embedded_bootstrap_servers(embedded)) == 0)
        unlink(embedded->address_file);
}

enum err embedded_create(
    const struct embedded_options *options, struct embedded **ret, struct error *err) {
    struct embedded *embedded = calloc(1, sizeof *embedded);
    if (embedded == NULL) return error_no_memory(err, "no memory for the embedded broker");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* its threads take no signals */
    enum err code = start(embedded, err);
    if (code == ERR_OK) code = create_topics(embedded, options, err);
    if (code == ERR_OK) code = open_gate(embedded, options, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == ERR_OK) code = write_address(embedded, options->address_file, err);
    if (code == ERR_OK) *ret = embedded;
    else embedded_destroy(embedded);
    return code;
}

void embedded_destroy(struct embedded *embedded) {
    if (embedded == NULL) return;
    remove_address(embedded);
    free(embedded->address_file);
    gate_close(embedded->gate);
    if (embedded->cluster != NULL) rd_kafka_mock_cluster_destroy(embedded->cluster);
    if (embedded->client != NULL) rd_kafka_destroy(embedded->client);
    free(embedded);
}

const char *embedded_bootstrap_servers(const struct embedded *embedded) {
    return gate_address(embedded->gate);
}

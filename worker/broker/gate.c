#include "broker/gate.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crew.h"
#include "broker/backlog.h"

enum {
    METADATA_API = 3, /* their responses name brokers */
    FIND_COORDINATOR_API = 10,
    SIZE_BYTES = 4,         /* in front of requests and responses */
    HEAD_BYTES = 8,         /* of a request: its kind, its version, its number */
    FRAME_MAX = 100000000,  /* the cluster's own limit */
    CHUNK_BYTES = 64 << 10, /* memory is taken for bytes that are there, not for what is claimed */
    LOOK_MS = 5,            /* while a request waits for room */
    COMMITTED_TIMEOUT_MS = 1000,
    ADDRESS_SIZE = 32,
    BROKER_NAME_SIZE = INET_ADDRSTRLEN + sizeof(int32_t) /* host and port, in a response */
};

/* A connection of a client, and its own one to the cluster. */
struct link {
    struct gate *gate;
    struct crew *crew; /* NULL: free */
    int client, cluster;
    atomic_bool is_over; /* it can be joined */
};

struct gate {
    struct backlog *backlog;
    rd_kafka_conf_t *conf; /* for the observer; NULL: it has been made */
    pthread_mutex_t look;  /* guards what follows, while somebody looks at commits */
    rd_kafka_t *observer;  /* asks what the group has committed; NULL: nobody has waited yet */
    uint64_t next_look_ns;
    atomic_bool is_closing;
    struct sockaddr_in cluster;
    int listener;
    char address[ADDRESS_SIZE];
    uint8_t cluster_name[BROKER_NAME_SIZE], own_name[BROKER_NAME_SIZE]; /* as in responses */
    size_t name_size;
    struct crew *door;
    struct link links[GATE_CONNECTIONS_MAX];
};

struct frame {
    uint8_t *bytes; /* with its size in front */
    size_t size;    /* of what is there */
};

/* ---- bytes ---- */

static bool receive(int from, void *to, size_t size) {
    return size == 0 || recv(from, to, size, MSG_WAITALL) == (ssize_t)size;
}

static bool put(int to, const void *bytes, size_t size) {
    for (const uint8_t *at = bytes; size > 0;) {
        ssize_t sent = send(to, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool relay(int from, int to, size_t size) {
    uint8_t chunk[CHUNK_BYTES];
    while (size > 0) {
        size_t part = size < sizeof chunk ? size : sizeof chunk;
        if (!receive(from, chunk, part) || !put(to, chunk, part)) return false;
        size -= part;
    }
    return true;
}

static bool receive_size(int from, size_t *ret) {
    uint8_t bytes[SIZE_BYTES] = {0};
    struct slice view = slice_of(bytes, sizeof bytes);
    int32_t size;
    if (!receive(from, bytes, sizeof bytes) || !produce_take_32(&view, &size)) return false;
    *ret = (size_t)size;
    return size >= HEAD_BYTES / 2 && size <= FRAME_MAX;
}

static bool put_size(int to, size_t size) {
    uint32_t word = htobe32((uint32_t)size);
    return put(to, &word, sizeof word);
}

/* Adds `size` bytes to what is there. */
static bool receive_more(int from, size_t size, struct frame *frame) {
    while (size > 0) {
        size_t part = size < CHUNK_BYTES ? size : CHUNK_BYTES;
        uint8_t *grown = realloc(frame->bytes, frame->size + part);
        if (grown == NULL) return false;
        frame->bytes = grown;
        if (!receive(from, grown + frame->size, part)) return false;
        frame->size += part;
        size -= part;
    }
    return true;
}

/* ---- responses ---- */

static void put_own_name(const struct gate *gate, struct frame *response) {
    uint8_t *at = response->bytes, *end = at + response->size;
    while ((at = memmem(at, (size_t)(end - at), gate->cluster_name, gate->name_size)) != NULL) {
        memcpy(at, gate->own_name, gate->name_size);
        at += gate->name_size;
    }
}

static bool pass_response(struct link *link) {
    size_t size;
    return receive_size(link->cluster, &size) && put_size(link->client, size) &&
           relay(link->cluster, link->client, size);
}

static bool pass_renamed(struct link *link) {
    struct frame response = {0};
    size_t size;
    bool is_passed =
        receive_size(link->cluster, &size) && receive_more(link->cluster, size, &response);
    if (is_passed) put_own_name(link->gate, &response);
    is_passed = is_passed && put_size(link->client, size) &&
                put(link->client, response.bytes, response.size);
    free(response.bytes);
    return is_passed;
}

/* ---- requests that append ---- */

static bool have_observer(struct gate *gate) {
    char why[256];
    if (gate->observer == NULL)
        gate->observer = rd_kafka_new(RD_KAFKA_CONSUMER, gate->conf, why, sizeof why);
    if (gate->observer != NULL) gate->conf = NULL; /* it is the client's now */
    return gate->observer != NULL;
}

static void take_commits(struct gate *gate) {
    rd_kafka_topic_partition_list_t *list = backlog_list(gate->backlog);
    if (list->cnt > 0 && rd_kafka_committed(gate->observer, list, COMMITTED_TIMEOUT_MS) ==
                             RD_KAFKA_RESP_ERR_NO_ERROR)
        backlog_commit(gate->backlog, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* One of those who wait asks for all. */
static void look_at_commits(struct gate *gate) {
    if (pthread_mutex_trylock(&gate->look) != 0) return;
    if (clock_ns() >= gate->next_look_ns && have_observer(gate)) {
        take_commits(gate);
        gate->next_look_ns = clock_ns_in(LOOK_MS);
    }
    pthread_mutex_unlock(&gate->look);
}

/* False: the client has gone, or the gate is closing. */
static bool client_waits(const struct link *link) {
    struct pollfd look = {.fd = link->client, .events = POLLRDHUP};
    return poll(&look, 1, LOOK_MS) == 0 &&
           !atomic_load_explicit(&link->gate->is_closing, memory_order_relaxed);
}

static enum backlog_answer wait_for_room(struct link *link, const struct produce_entries *entries) {
    for (;;) {
        enum backlog_answer answer = backlog_take_room(link->gate->backlog, *entries);
        if (answer != BACKLOG_FULL) return answer;
        look_at_commits(link->gate);
        if (!client_waits(link)) return BACKLOG_FULL;
    }
}

static bool refuse(struct link *link, const struct produce_entries *entries) {
    char *bytes = NULL;
    size_t size;
    FILE *response = open_memstream(&bytes, &size);
    if (response == NULL) return false;
    produce_write_refusal(*entries, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, response);
    bool is_refused =
        fclose(response) == 0 && put_size(link->client, size) && put(link->client, bytes, size);
    free(bytes);
    return is_refused;
}

/* The cluster answers all; a client that wants no answer gets none. */
static bool exchange(struct link *link, struct frame *request, struct produce_entries entries,
    size_t acks_at, struct frame *response) {
    static const uint8_t none[2] = {0}, one[2] = {0, 1};
    uint8_t *acks = request->bytes + SIZE_BYTES + acks_at;
    bool is_awaited = memcmp(acks, none, sizeof none) != 0;
    if (!is_awaited) memcpy(acks, one, sizeof one);
    struct produce_entries answers = {0};
    size_t size;
    bool is_answered =
        put(link->cluster, request->bytes, request->size) && receive_size(link->cluster, &size) &&
        receive_more(link->cluster, size, response) &&
        produce_read_response(slice_of(response->bytes, response->size), entries.version, &answers);
    backlog_append(link->gate->backlog, entries, answers);
    return is_answered && (!is_awaited || (put_size(link->client, response->size) &&
                                              put(link->client, response->bytes, response->size)));
}

static bool pass_produce(struct link *link, struct frame *request) {
    struct slice view = slice_of(request->bytes + SIZE_BYTES, request->size - SIZE_BYTES);
    struct produce_entries entries;
    struct frame response = {0};
    size_t acks_at;
    if (!produce_read_request(view, &entries, &acks_at)) return false;
    enum backlog_answer answer = wait_for_room(link, &entries);
    if (answer == BACKLOG_TOO_LARGE) return refuse(link, &entries);
    bool is_passed = answer == BACKLOG_ROOM && exchange(link, request, entries, acks_at, &response);
    free(response.bytes);
    return is_passed;
}

/* ---- connections ---- */

/* `head` is the begin of the request. */
static bool pass_other(struct link *link, const struct frame *head, size_t size, int16_t api) {
    if (!put(link->cluster, head->bytes, head->size) ||
        !relay(link->client, link->cluster, size - HEAD_BYTES))
        return false;
    bool names_brokers = api == METADATA_API || api == FIND_COORDINATOR_API;
    return names_brokers ? pass_renamed(link) : pass_response(link);
}

static bool pass_request(struct link *link, struct frame *request) {
    size_t size;
    int16_t api;
    if (!receive_size(link->client, &size) || size < HEAD_BYTES) return false;
    request->size = 0;
    uint8_t *grown = realloc(request->bytes, SIZE_BYTES);
    if (grown == NULL) return false;
    request->bytes = grown;
    memcpy(grown, &(uint32_t){htobe32((uint32_t)size)}, SIZE_BYTES);
    request->size = SIZE_BYTES;
    if (!receive_more(link->client, HEAD_BYTES, request)) return false;
    struct slice view = slice_of(request->bytes + SIZE_BYTES, HEAD_BYTES);
    (void)produce_take_16(&view, &api);
    if (api != PRODUCE_API) return pass_other(link, request, size, api);
    return receive_more(link->client, size - HEAD_BYTES, request) && pass_produce(link, request);
}

static void run_link(void *context, uint32_t index) {
    struct link *link = context;
    struct frame request = {0};
    if (connect(link->cluster, (const struct sockaddr *)&link->gate->cluster,
            sizeof link->gate->cluster) == 0)
        while (pass_request(link, &request)) {
        }
    free(request.bytes);
    shutdown(link->client, SHUT_RDWR);
    shutdown(link->cluster, SHUT_RDWR);
    /* release: pairs with the acquire in find_free() */
    atomic_store_explicit(&link->is_over, true, memory_order_release);
}

static void end_link(struct link *link) {
    if (link->crew == NULL) return;
    crew_join(&link->crew);
    close(link->client);
    close(link->cluster);
}

static int open_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static struct link *find_free(struct gate *gate) {
    struct link *ret = NULL;
    for (size_t i = 0; i < GATE_CONNECTIONS_MAX; i++) {
        struct link *link = &gate->links[i];
        /* acquire: pairs with the release in run_link() */
        if (atomic_load_explicit(&link->is_over, memory_order_acquire)) end_link(link);
        if (link->crew == NULL && ret == NULL) ret = link;
    }
    return ret;
}

/* False: the client is not taken. */
static bool begin_link(struct gate *gate, int client) {
    struct link *link = find_free(gate);
    if (link == NULL) return false;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    link->gate = gate;
    link->client = client;
    link->cluster = open_socket();
    /* relaxed: the thread that sets it starts later */
    atomic_store_explicit(&link->is_over, false, memory_order_relaxed);
    const struct crew_options crew = {
        .name = "gate-link", .count = 1, .run = run_link, .context = link};
    struct error err;
    if (link->cluster < 0) return false;
    if (crew_start(&crew, &link->crew, &err) == ERR_OK) return true;
    close(link->cluster);
    return false;
}

static void run_door(void *context, uint32_t index) {
    struct gate *gate = context;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    while (!atomic_load_explicit(&gate->is_closing, memory_order_relaxed)) {
        int client = accept4(gate->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) nanosleep(&pause, NULL); /* the process may be out of descriptors */
        else if (!begin_link(gate, client)) close(client);
    }
}

/* ---- the gate ---- */

static enum err fail(struct error *err, const char *what) {
    int native = errno;
    return error_set(err, ERR_BROKER, native,
        "check that loopback sockets can be opened, and the limits on threads and open files",
        "the embedded broker's gate: %s: %s", what, strerror(native));
}

static size_t name_of(const struct sockaddr_in *address, uint8_t ret[static BROKER_NAME_SIZE]) {
    char host[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address->sin_addr, host, sizeof host);
    uint32_t port = htobe32(ntohs(address->sin_port));
    size_t length = strlen(host);
    memcpy(ret, host, length);
    memcpy(ret + length, &port, sizeof port);
    return length + sizeof port;
}

static bool read_cluster(const struct gate_options *options, struct sockaddr_in *ret) {
    char host[INET_ADDRSTRLEN];
    unsigned port;
    *ret = (struct sockaddr_in){.sin_family = AF_INET};
    if (sscanf(rd_kafka_mock_cluster_bootstraps(options->cluster), "%15[0-9.]:%u", host, &port) !=
        2)
        return false;
    ret->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &ret->sin_addr) == 1;
}

/* At the cluster's own host: so both names have one length. */
static enum err listen_beside(
    struct gate *gate, const struct gate_options *options, struct error *err) {
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    if (!read_cluster(options, &gate->cluster)) {
        errno = EAFNOSUPPORT;
        return fail(err, "the address of librdkafka's mock cluster");
    }
    own = gate->cluster;
    own.sin_port = 0;
    gate->listener = open_socket();
    if (gate->listener < 0 || bind(gate->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(gate->listener, SOMAXCONN) != 0 ||
        getsockname(gate->listener, (struct sockaddr *)&own, &size) != 0)
        return fail(err, "listening");
    gate->name_size = name_of(&gate->cluster, gate->cluster_name);
    (void)name_of(&own, gate->own_name);
    char host[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &own.sin_addr, host, sizeof host);
    snprintf(gate->address, sizeof gate->address, "%s:%u", host, ntohs(own.sin_port));
    return ERR_OK;
}

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *line) {}

static enum err configure_observer(
    struct gate *gate, const struct gate_options *options, struct error *err) {
    char why[256];
    const char *servers = rd_kafka_mock_cluster_bootstraps(options->cluster);
    gate->conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(gate->conf, on_log);
    if (rd_kafka_conf_set(gate->conf, "bootstrap.servers", servers, why, sizeof why) ==
            RD_KAFKA_CONF_OK &&
        rd_kafka_conf_set(gate->conf, "group.id", options->group, why, sizeof why) ==
            RD_KAFKA_CONF_OK)
        return ERR_OK;
    return error_set(err, ERR_BROKER, 0, "give kafka.group a name that Kafka allows",
        "the embedded broker's gate: %s", why);
}

enum err gate_open(const struct gate_options *options, struct gate **ret, struct error *err) {
    struct gate *gate = calloc(1, sizeof *gate);
    enum err code = ERR_NO_MEMORY;
    if (gate == NULL) goto no_memory;
    gate->listener = -1;
    pthread_mutex_init(&gate->look, NULL);
    gate->backlog = backlog_create(options->topics, options->topic_count, options->partitions);
    if (gate->backlog == NULL) goto no_memory;
    /* Newer versions have another form. */
    rd_kafka_mock_set_apiversion(options->cluster, PRODUCE_API, 0, PRODUCE_VERSION_MAX);
    code = listen_beside(gate, options, err);
    if (code == ERR_OK) code = configure_observer(gate, options, err);
    const struct crew_options door = {
        .name = "gate-door", .count = 1, .run = run_door, .context = gate};
    if (code == ERR_OK) code = crew_start(&door, &gate->door, err);
    if (code != ERR_OK) goto fail;
    *ret = gate;
    return ERR_OK;
no_memory:
    error_set(err, code, 0, "give the process more memory", "no memory for the embedded broker");
fail:
    gate_close(gate);
    return code;
}

void gate_close(struct gate *gate) {
    if (gate == NULL) return;
    /* relaxed, as where it is read: it passes nothing on */
    atomic_store_explicit(&gate->is_closing, true, memory_order_relaxed);
    if (gate->listener >= 0) shutdown(gate->listener, SHUT_RDWR); /* wakes the door */
    crew_join(&gate->door);
    for (size_t i = 0; i < GATE_CONNECTIONS_MAX; i++) {
        struct link *link = &gate->links[i];
        if (link->crew == NULL) continue;
        shutdown(link->client, SHUT_RDWR);
        shutdown(link->cluster, SHUT_RDWR);
        end_link(link);
    }
    if (gate->observer != NULL)
        rd_kafka_destroy_flags(gate->observer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (gate->conf != NULL) rd_kafka_conf_destroy(gate->conf);
    if (gate->listener >= 0) close(gate->listener);
    pthread_mutex_destroy(&gate->look);
    backlog_destroy(gate->backlog);
    free(gate);
}

const char *gate_address(const struct gate *gate) {
    return gate->address;
}

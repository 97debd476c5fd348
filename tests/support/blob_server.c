#include "support/blob_server.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/loopback.h"
#include "testing.h"

enum { CONNECTIONS_MAX = 4096, HEAD_MAX = 4096, BLOBS_MAX = 256 };

struct stored {
    char name[68]; /* "ab/abcd..." */
    struct slice bytes;
};

struct blob_server {
    int fd;
    char url[80];
    pthread_t acceptor;
    pthread_mutex_t lock; /* guards what follows */
    enum mishap mishap;
    unsigned mishaps_left; /* 0: it does not end */
    char elsewhere[80];    /* where GETs are sent to; "": nowhere */
    void (*gate)(void *context);
    void *gate_context;
    unsigned gets;
    bool lacks_credentials;
    size_t blob_count;
    struct stored blobs[BLOBS_MAX];
    size_t connection_count;
    pthread_t connections[CONNECTIONS_MAX]; /* each serves one request */
};

struct connection {
    struct blob_server *server;
    int fd;
};

struct request {
    char head[HEAD_MAX];
    bool is_put;
    char path[256];
    uint8_t *body;
    size_t body_size;
};

static void send_all(int fd, const void *data, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the worker may hang up: that is part of the tests */
        data = (const char *)data + sent;
        size -= (size_t)sent;
    }
}

__attribute__((format(printf, 2, 3))) static void send_head(int fd, const char *format, ...) {
    char head[512];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(head, sizeof head, format, args);
    va_end(args);
    send_all(fd, head, (size_t)size);
}

static bool read_request(int fd, struct request *request) {
    size_t used = 0;
    char *end = NULL, method[8];
    while (end == NULL && used < HEAD_MAX - 1) {
        ssize_t got = recv(fd, request->head + used, HEAD_MAX - 1 - used, 0);
        if (got <= 0) return false;
        used += (size_t)got;
        request->head[used] = 0;
        end = strstr(request->head, "\r\n\r\n");
    }
    if (end == NULL || sscanf(request->head, "%7s %255s", method, request->path) != 2) return false;
    request->is_put = strcmp(method, "PUT") == 0;
    const char *length = strcasestr(request->head, "\r\nContent-Length:");
    request->body_size = length == NULL ? 0 : strtoul(length + 17, NULL, 10);
    request->body = calloc(1, request->body_size + 1);
    size_t have = used - (size_t)(end + 4 - request->head);
    memcpy(request->body, end + 4, have);
    while (have < request->body_size) {
        ssize_t got = recv(fd, request->body + have, request->body_size - have, 0);
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

static struct stored *find(struct blob_server *server, const char *name) {
    for (size_t i = 0; i < server->blob_count; i++)
        if (strcmp(server->blobs[i].name, name) == 0) return &server->blobs[i];
    return NULL;
}

static void store(struct blob_server *server, const char *name, struct slice bytes) {
    if (find(server, name) != NULL) return;
    assert_true(server->blob_count < BLOBS_MAX);
    uint8_t *copy = malloc(bytes.size + 1);
    memcpy(copy, bytes.data, bytes.size);
    struct stored *stored = &server->blobs[server->blob_count++];
    snprintf(stored->name, sizeof stored->name, "%s", name);
    stored->bytes = slice_of(copy, bytes.size);
}

static void answer_put(
    struct blob_server *server, int fd, const struct request *request, enum mishap mishap) {
    if (mishap == MISHAP_STATUS_500 || mishap == MISHAP_STATUS_403) {
        send_head(fd, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n",
            mishap == MISHAP_STATUS_500 ? 500 : 403);
        return;
    }
    if (mishap == MISHAP_REDIRECT_TO_FILE) {
        send_head(fd, "HTTP/1.1 303 See\r\nLocation: file:///etc/passwd\r\n\r\n");
        return;
    }
    pthread_mutex_lock(&server->lock);
    store(server, request->path + strlen("/store/"), slice_of(request->body, request->body_size));
    pthread_mutex_unlock(&server->lock);
    send_head(fd, "HTTP/1.1 201 Made\r\nContent-Length: 5\r\n\r\nmade\n");
}

static void send_endless(int fd, size_t least) {
    static const char zeros[4096];
    send_head(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for (size_t sent = 0; sent < 2 * least + (4u << 20); sent += sizeof zeros)
        send_all(fd, zeros, sizeof zeros);
}

/* Until the worker hangs up. */
static void send_dripping(int fd, size_t claimed) {
    send_head(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", claimed);
    const struct timespec pause = {.tv_nsec = 20000000};
    char nothing;
    for (size_t i = 1; i < claimed; i++) {
        send_all(fd, "x", 1);
        nanosleep(&pause, NULL);
        if (recv(fd, &nothing, 1, MSG_DONTWAIT) == 0) return;
    }
    (void)!recv(fd, &nothing, 1, 0);
}

static void send_bytes(int fd, size_t claimed, const void *data, size_t size) {
    send_head(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", claimed);
    send_all(fd, data, size);
}

static void answer_get(
    struct blob_server *server, int fd, const struct request *request, enum mishap mishap) {
    bool is_moved = strncmp(request->path, "/moved/", 7) == 0;
    const char *name = request->path + strlen("/store/"); /* as long as "/moved/" */
    pthread_mutex_lock(&server->lock);
    const struct stored *stored = find(server, name);
    struct slice bytes = stored != NULL ? stored->bytes : slice_of("", 0);
    char elsewhere[sizeof server->elsewhere];
    snprintf(elsewhere, sizeof elsewhere, "%s", server->elsewhere);
    pthread_mutex_unlock(&server->lock);
    if (elsewhere[0] != 0) {
        send_head(fd, "HTTP/1.1 302 Moved\r\nLocation: %s%s\r\nContent-Length: 0\r\n\r\n",
            elsewhere, name);
        return;
    }
    if (stored == NULL) {
        send_head(fd, "HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    switch (is_moved ? MISHAP_NONE : mishap) {
    case MISHAP_STATUS_500: send_head(fd, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"); return;
    case MISHAP_WRONG_BYTES: {
        uint8_t *wrong = calloc(1, bytes.size);
        send_bytes(fd, bytes.size, wrong, bytes.size);
        free(wrong);
        return;
    }
    case MISHAP_TOO_LONG:
        send_bytes(fd, bytes.size + 1, bytes.data, bytes.size);
        send_all(fd, "x", 1);
        return;
    case MISHAP_STATUS_403: send_head(fd, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"); return;
    case MISHAP_DRIP: send_dripping(fd, bytes.size); return;
    case MISHAP_ENDLESS: send_endless(fd, bytes.size); return;
    case MISHAP_CUT: send_bytes(fd, bytes.size, bytes.data, bytes.size / 2); return;
    case MISHAP_REDIRECT_TO_FILE:
        send_head(fd, "HTTP/1.1 302 Moved\r\nLocation: file:///etc/passwd\r\n\r\n");
        return;
    case MISHAP_REDIRECT_FOR_EVER:
        send_head(
            fd, "HTTP/1.1 302 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", request->path);
        return;
    case MISHAP_REDIRECT:
        send_head(
            fd, "HTTP/1.1 302 Moved\r\nLocation: /moved/%s\r\nContent-Length: 0\r\n\r\n", name);
        return;
    case MISHAP_NONE: send_bytes(fd, bytes.size, bytes.data, bytes.size); return;
    }
}

static void *connection_thread(void *context) {
    struct connection *connection = context;
    struct blob_server *server = connection->server;
    struct request request = {0};
    if (read_request(connection->fd, &request)) {
        /* base64 of reader:hunter2 */
        bool has_credentials =
            strstr(request.head, "Authorization: Basic cmVhZGVyOmh1bnRlcjI=") != NULL;
        pthread_mutex_lock(&server->lock);
        if (!request.is_put) server->gets++;
        if (!has_credentials) server->lacks_credentials = true;
        enum mishap mishap = server->mishap;
        if (server->mishaps_left > 0 && --server->mishaps_left == 0) server->mishap = MISHAP_NONE;
        void (*gate)(void *) = request.is_put ? NULL : server->gate;
        pthread_mutex_unlock(&server->lock);
        if (gate != NULL) gate(server->gate_context);
        (request.is_put ? answer_put : answer_get)(server, connection->fd, &request, mishap);
    }
    free(request.body);
    shutdown(connection->fd, SHUT_WR);
    close(connection->fd);
    free(connection);
    return NULL;
}

static void *acceptor_thread(void *context) {
    struct blob_server *server = context;
    for (;;) {
        int fd = accept(server->fd, NULL, NULL);
        if (fd < 0) return NULL; /* shut down */
        struct connection *connection = malloc(sizeof *connection);
        *connection = (struct connection){.server = server, .fd = fd};
        pthread_mutex_lock(&server->lock);
        assert_true(server->connection_count < CONNECTIONS_MAX);
        pthread_create(
            &server->connections[server->connection_count++], NULL, connection_thread, connection);
        pthread_mutex_unlock(&server->lock);
    }
}

struct blob_server *blob_server_start(void) {
    static const char *const proxies[] = {
        "http_proxy", "all_proxy", "ALL_PROXY"}; /* libcurl obeys them */
    for (size_t i = 0; i < sizeof proxies / sizeof proxies[0]; i++) unsetenv(proxies[i]);
    struct blob_server *server = calloc(1, sizeof *server);
    assert_non_null(server);
    pthread_mutex_init(&server->lock, NULL);
    struct sockaddr_in address;
    server->fd = loopback_listen(&address);
    snprintf(server->url, sizeof server->url, "http://reader:hunter2@127.0.0.1:%d/store/",
        ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->acceptor, NULL, acceptor_thread, server), 0);
    return server;
}

void blob_server_stop(struct blob_server *server) {
    if (server == NULL) return;
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    for (size_t i = 0; i < server->connection_count; i++)
        pthread_join(server->connections[i], NULL);
    close(server->fd);
    for (size_t i = 0; i < server->blob_count; i++)
        free((void *)(uintptr_t)server->blobs[i].bytes.data);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const char *blob_server_url(const struct blob_server *server) {
    return server->url;
}

static void name_of(const struct digest *digest, char name[static 68]) {
    char text[DIGEST_TEXT_SIZE];
    digest_format(digest, text);
    snprintf(name, 68, "%.2s/%.64s", text + 7, text + 7);
}

struct digest blob_server_add(struct blob_server *server, struct slice payload) {
    struct digest digest = digest_of(payload);
    char name[68];
    name_of(&digest, name);
    pthread_mutex_lock(&server->lock);
    store(server, name, payload);
    pthread_mutex_unlock(&server->lock);
    return digest;
}

bool blob_server_has(struct blob_server *server, struct slice payload) {
    struct digest digest = digest_of(payload);
    char name[68];
    name_of(&digest, name);
    pthread_mutex_lock(&server->lock);
    const struct stored *stored = find(server, name);
    bool has = stored != NULL && slice_equal(stored->bytes, payload);
    pthread_mutex_unlock(&server->lock);
    return has;
}

void blob_server_set_mishap(struct blob_server *server, enum mishap mishap) {
    blob_server_set_mishaps(server, mishap, 0);
}

void blob_server_set_mishaps(struct blob_server *server, enum mishap mishap, unsigned count) {
    pthread_mutex_lock(&server->lock);
    server->mishap = mishap;
    server->mishaps_left = count;
    pthread_mutex_unlock(&server->lock);
}

void blob_server_redirect(struct blob_server *server, const char *url) {
    pthread_mutex_lock(&server->lock);
    snprintf(server->elsewhere, sizeof server->elsewhere, "%s", url);
    pthread_mutex_unlock(&server->lock);
}

void blob_server_set_gate(struct blob_server *server, void (*gate)(void *context), void *context) {
    pthread_mutex_lock(&server->lock);
    server->gate = gate;
    server->gate_context = context;
    pthread_mutex_unlock(&server->lock);
}

unsigned blob_server_gets(struct blob_server *server) {
    pthread_mutex_lock(&server->lock);
    unsigned gets = server->gets;
    pthread_mutex_unlock(&server->lock);
    return gets;
}

bool blob_server_saw_credentials(struct blob_server *server) {
    pthread_mutex_lock(&server->lock);
    bool saw = !server->lacks_credentials;
    pthread_mutex_unlock(&server->lock);
    return saw;
}

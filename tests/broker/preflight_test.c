/* What the first word with the brokers makes of what librdkafka says, in whichever way it does. */
#include "broker/preflight.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/loopback.h"
#include "testing.h"

enum { TIMEOUT_MS = 60000 };

/* ---- a server that speaks no TLS ---- */

struct server {
    int fd;
    bool is_hasty; /* answers before it is asked */
    char address[32];
    pthread_t thread;
};

static void *answer_all(void *context) {
    static const char no_tls[] = "HTTP/1.0 400 what is this\r\n\r\n";
    struct server *server = context;
    for (int fd; (fd = accept(server->fd, NULL, NULL)) >= 0; close(fd)) {
        char said[4096];
        if (server->is_hasty || recv(fd, said, sizeof said, 0) > 0)
            (void)send(fd, no_tls, sizeof no_tls - 1, MSG_NOSIGNAL);
        /* An end with bytes that nobody read would be a reset, and take the answer with it. */
        shutdown(fd, SHUT_WR);
        while (recv(fd, said, sizeof said, 0) > 0) {
        }
    }
    return NULL;
}

static void server_start(struct server *server) {
    struct sockaddr_in at;
    server->fd = loopback_listen(&at);
    snprintf(server->address, sizeof server->address, "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, answer_all, server), 0);
}

static void server_stop(struct server *server) {
    shutdown(server->fd, SHUT_RDWR); /* ends its accept() */
    pthread_join(server->thread, NULL);
    close(server->fd);
}

static enum err greet(const char *address, struct error *err) {
    static char *keys[] = {"security.protocol"}, *values[] = {"ssl"};
    const struct preflight_options options = {.kafka = {.bootstrap_servers = address,
                                                  .setting_count = 1,
                                                  .setting_keys = keys,
                                                  .setting_values = values},
        .section = "kafka.consumer",
        .timeout_ms = TIMEOUT_MS};
    return preflight(&options, err);
}

static void assert_refused(bool is_hasty) {
    struct server server = {.is_hasty = is_hasty};
    struct error err;
    server_start(&server);
    assert_int_equal(greet(server.address, &err), ERR_BROKER);
    assert_non_null(strstr(err.message, "refuse kafka.consumer"));
    assert_non_null(strstr(err.message, "SSL routines"));
    assert_non_null(strstr(err.fix, "ssl.ca.location"));
    server_stop(&server);
}

TEST(a_handshake_that_fails_is_a_refusal) {
    assert_refused(false);
}

TEST(a_handshake_that_fails_in_its_first_step_is_one_too) {
    assert_refused(true);
}

TEST(where_nobody_listens_there_is_no_answer) {
    struct server server;
    struct error err;
    server_start(&server);
    server_stop(&server);
    assert_int_equal(greet(server.address, &err), ERR_TIMEOUT);
}

RUN_TESTS(T(a_handshake_that_fails_is_a_refusal),
    T(a_handshake_that_fails_in_its_first_step_is_one_too),
    T(where_nobody_listens_there_is_no_answer))

#include "http/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "http/token.h"

enum { CONNECTIONS_MAX = 32, CONNECTION_TIMEOUT_S = 10, BACKLOG = 32 };

static const char VERBOSE[] = "verbose";

struct http {
    struct MHD_Daemon *daemon;
    size_t connection_count;
    int connections[CONNECTIONS_MAX]; /* their sockets, oldest first */
    struct http_options options;
};

/* ---- pages ---- */

static const struct http_page *find_page(const struct http *http, const char *path) {
    for (const struct http_page *page = http->options.pages; page->path != NULL; page++)
        if (strcmp(page->path, path) == 0) return page;
    return NULL;
}

static enum MHD_Result answer(const struct http *http, struct MHD_Connection *connection,
    unsigned status, const char *type, void *body, size_t size, enum MHD_ResponseMemoryMode mode) {
    struct MHD_Response *response = MHD_create_response_from_buffer(size, body, mode);
    if (response == NULL) {
        if (mode == MHD_RESPMEM_MUST_FREE) free(body);
        return MHD_NO;
    }
    enum MHD_Result ret = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (ret == MHD_YES)
        ret = MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (ret == MHD_YES)
        ret = MHD_add_response_header(response, "Content-Security-Policy",
            http->options.policy != NULL ? http->options.policy : "default-src 'none'");
    /* What is text to us is not taken for a page, and no other site learns from where one came. */
    if (ret == MHD_YES)
        ret = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (ret == MHD_YES) ret = MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    if (ret == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        ret = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (ret == MHD_YES && status == MHD_HTTP_UNAUTHORIZED)
        ret = MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (ret == MHD_YES) ret = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return ret;
}

static enum MHD_Result refuse(const struct http *http, struct MHD_Connection *connection,
    unsigned status, char *text, size_t size) {
    return answer(
        http, connection, status, "text/plain; charset=utf-8", text, size, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_page(
    const struct http *http, struct MHD_Connection *connection, const struct http_page *page) {
    char *body = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&body, &size);
    if (stream == NULL) return MHD_NO;
    bool is_verbose = MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, VERBOSE,
                          sizeof VERBOSE - 1, NULL, NULL) == MHD_YES;
    unsigned status = page->write(http->options.context, is_verbose, stream)
                          ? MHD_HTTP_OK
                          : MHD_HTTP_SERVICE_UNAVAILABLE;
    if (fclose(stream) != 0) {
        free(body);
        return MHD_NO;
    }
    return answer(http, connection, status, page->type, body, size, MHD_RESPMEM_MUST_FREE);
}

/* 0: the request may read pages that are not public; otherwise the HTTP status to answer. */
static unsigned check_token(const struct http *http, struct MHD_Connection *connection) {
    struct digest token;
    struct error err;
    if (http->options.token_file[0] == 0) return 0;
    if (token_read(http->options.token_file, &token, &err) != ERR_OK)
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    const char *brought =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    return token_is_brought(&token, brought) ? 0 : MHD_HTTP_UNAUTHORIZED;
}

/* An MHD_AccessHandlerCallback. It reads nothing of a request but its path and token. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
    const char *path, const char *method, const char *version, const char *upload,
    size_t *upload_size, void **request) {
    static char no_page[] = "there is no such page\n", no_method[] = "GET and HEAD only\n",
                no_token[] = "the token is missing or wrong, or http.token_file cannot be read\n";
    const struct http *http = context;
    const struct http_page *page = find_page(http, path);
    unsigned denied = page != NULL && page->is_public ? 0 : check_token(http, connection);
    if (denied != 0) return refuse(http, connection, denied, no_token, sizeof no_token - 1);
    bool is_read =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (!is_read)
        return refuse(
            http, connection, MHD_HTTP_METHOD_NOT_ALLOWED, no_method, sizeof no_method - 1);
    if (page == NULL)
        return refuse(http, connection, MHD_HTTP_NOT_FOUND, no_page, sizeof no_page - 1);
    return answer_page(http, connection, page);
}

/* ---- connections ---- */

static void forget(struct http *http, int fd) {
    size_t kept = 0;
    for (size_t i = 0; i < http->connection_count; i++)
        if (http->connections[i] != fd) http->connections[kept++] = http->connections[i];
    http->connection_count = kept;
}

/*
 * An MHD_NotifyConnectionCallback. When all places are taken, a new connection closes the oldest,
 * so that clients that send slowly, or nothing, cannot keep others from an answer.
 */
static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode what) {
    struct http *http = context;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    forget(http, fd);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) return;
    if (http->connection_count == CONNECTIONS_MAX) {
        int oldest = http->connections[0];
        shutdown(oldest, SHUT_RDWR);
        forget(http, oldest);
    }
    http->connections[http->connection_count++] = fd;
}

/* ---- listening ---- */

static enum err fail(struct error *err, const char *address, int native, const char *why) {
    return error_set(err, ERR_CONFIG, native,
        "give http.listen an address of this machine and a free port, such as 127.0.0.1:9400",
        "listening on '%s': %s", address, why);
}

static int listen_at(const struct addrinfo *at) {
    const int on = 1;
    int type = at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = socket(at->ai_family, type, at->ai_protocol);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int native = errno;
    close(fd);
    errno = native;
    return -1;
}

static enum err open_socket(const char *address, int *ret, struct error *err) {
    const struct addrinfo wanted = {
        .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct address named;
    struct addrinfo *found;
    if (!address_read(address, &named)) return fail(err, address, 0, "it is not host:port");
    int failed = getaddrinfo(named.host, named.port, &wanted, &found);
    if (failed != 0) return fail(err, address, failed, gai_strerror(failed));
    *ret = listen_at(found);
    int native = errno;
    freeaddrinfo(found);
    return *ret >= 0 ? ERR_OK : fail(err, address, native, strerror(native));
}

static enum err start(struct http *http, const char *address, struct error *err) {
    int fd;
    enum err code = open_socket(address, &fd, err);
    if (code != ERR_OK) return code;
    /*
     * The library's own limit is higher: it also counts connections that were closed here but not
     * cleaned up yet.
     */
    http->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, 2u * CONNECTIONS_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
    if (http->daemon != NULL) return ERR_OK;
    close(fd);
    return fail(err, address, 0, "the HTTP server could not be started");
}

enum err http_listen(const struct http_options *options, struct http **ret, struct error *err) {
    struct digest token;
    if (options->token_file[0] != 0) {
        enum err code = token_read(options->token_file, &token, err);
        if (code != ERR_OK) return code;
    }
    struct http *http = malloc(sizeof *http);
    if (http == NULL) return error_no_memory(err, "no memory to serve HTTP");
    *http = (struct http){.options = *options};
    enum err code = start(http, options->address, err);
    if (code == ERR_OK) *ret = http;
    else free(http);
    return code;
}

int http_fd(const struct http *http) {
    if (http == NULL) return -1;
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void http_serve(struct http *http) {
    if (http != NULL) MHD_run(http->daemon);
}

void http_close(struct http *http) {
    if (http == NULL) return;
    MHD_stop_daemon(http->daemon);
    free(http);
}

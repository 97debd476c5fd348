#include "cli/ask.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/address.h"
#include "base/file.h"

enum { PAGE_BYTES_MAX = 16 << 20, TOKEN_BYTES_MAX = 4096, TIMEOUT_S = 10, CHUNK_BYTES = 65536 };

static enum err fail(struct error *err, const struct settings *settings, const char *why) {
    return error_set(err, ERR_IO, 0,
        "check that the worker runs with this configuration, on this machine",
        "asking the worker at http://%s: %s", settings->http.listen, why);
}

static int connect_to(const struct address *address) {
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    struct addrinfo *found;
    int fd = -1;
    if (getaddrinfo(address->host, address->port, &wanted, &found) != 0) return -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0) continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
        int native = errno;
        close(fd);
        errno = native;
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* HTTP/1.0: the answer ends with the connection. */
static enum err write_request(const struct settings *settings, const char *path, char **ret,
    size_t *size, struct error *err) {
    char *token = NULL;
    size_t token_bytes = 0;
    FILE *request = NULL;
    enum err code = ERR_OK;
    if (settings->http.token_file[0] != 0)
        code = file_read(settings->http.token_file, TOKEN_BYTES_MAX, &token, &token_bytes, err);
    if (code != ERR_OK) return code;
    if ((request = open_memstream(ret, size)) == NULL) {
        free(token);
        return error_no_memory(err, "no memory");
    }
    fprintf(request, "GET %s HTTP/1.0\r\n", path);
    if (token != NULL) /* without the blanks and ends of lines around it */
        fprintf(request, "Authorization: Bearer %.*s\r\n",
            (int)strcspn(token + strspn(token, " \t\r\n"), " \t\r\n"),
            token + strspn(token, " \t\r\n"));
    fputs("\r\n", request);
    free(token);
    if (fclose(request) == 0) return ERR_OK;
    return error_no_memory(err, "no memory");
}

static bool send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* All that comes until the connection ends, and a NUL. */
static enum err receive_all(
    int fd, const struct settings *settings, char **ret, size_t *size, struct error *err) {
    size_t room = 0;
    *size = 0;
    for (;;) {
        if (*size > PAGE_BYTES_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "ask the worker itself",
                "the worker at http://%s says more than 16 MiB", settings->http.listen);
        if (room - *size < CHUNK_BYTES + 1) {
            char *larger = realloc(*ret, room = 2 * room + CHUNK_BYTES + 1);
            if (larger == NULL) return error_no_memory(err, "no memory");
            *ret = larger;
        }
        ssize_t count = recv(fd, *ret + *size, CHUNK_BYTES, 0);
        if (count < 0) return fail(err, settings, "its answer does not come");
        if (count == 0) break;
        *size += (size_t)count;
    }
    (*ret)[*size] = 0;
    return ERR_OK;
}

/* Leaves what stands behind the head. */
static enum err take_body(
    const struct settings *settings, char *answer, size_t *size, struct error *err) {
    int status = 0;
    char *body = strstr(answer, "\r\n\r\n");
    if (sscanf(answer, "HTTP/1.%*1[01] %3d", &status) != 1 || body == NULL)
        return fail(err, settings, "it does not answer as a worker does");
    if (status == 401 || status == 503)
        return error_set(err, ERR_CONFIG, 0, "give http.token_file the file that the worker has",
            "the worker at http://%s refuses the token", settings->http.listen);
    if (status != 200) return fail(err, settings, "it has no such page");
    body += 4;
    *size -= (size_t)(body - answer);
    memmove(answer, body, *size + 1);
    return ERR_OK;
}

enum err ask_worker(const struct settings *settings, const char *path, char **ret, size_t *size,
    struct error *err) {
    struct address address;
    char *request = NULL;
    size_t request_bytes;
    *ret = NULL;
    if (!address_read(settings->http.listen, &address))
        return error_set(err, ERR_CONFIG, 0,
            "set http.listen, such as 127.0.0.1:9400, and start the worker again",
            "the worker listens nowhere: its configuration has no http.listen");
    enum err code = write_request(settings, path, &request, &request_bytes, err);
    if (code != ERR_OK) return code;
    int fd = connect_to(&address);
    if (fd < 0 || !send_all(fd, request, request_bytes))
        code = fail(err, settings, errno != 0 ? strerror(errno) : "it is not there");
    else code = receive_all(fd, settings, ret, size, err);
    if (fd >= 0) close(fd);
    free(request);
    if (code == ERR_OK) code = take_body(settings, *ret, size, err);
    if (code != ERR_OK) {
        free(*ret);
        *ret = NULL;
    }
    return code;
}

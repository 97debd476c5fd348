#include "supervise/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/text.h"

enum { MESSAGE_BYTES = 512 };

enum standing { STARTING, READY, RELOADING, STOPPING };

struct notify {
    int fd;
    struct sockaddr_un address;
    socklen_t address_bytes;
    uint64_t sign_interval_ns; /* between two signs of life; 0: none is wanted */
    uint64_t next_sign_ns;
    enum standing standing;
    enum standing told;
    uint64_t reload_us; /* when a reload began that systemd does not know of yet; 0: none */
    bool has_failed;    /* a failure was logged */
    char status[MESSAGE_BYTES - 16];
};

/* ---- datagrams ---- */

/* False: it must be sent again, for example because the socket is full. */
static bool say(struct notify *notify, const char *message) {
    const struct sockaddr *to = (const struct sockaddr *)&notify->address;
    ssize_t sent = sendto(notify->fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL, to,
        notify->address_bytes);
    if (sent >= 0 || errno == EAGAIN || errno == ENOBUFS) return sent >= 0;
    if (!notify->has_failed)
        log_line(
            LOG_WARN, "cannot tell systemd how the worker is (NOTIFY_SOCKET): %s", strerror(errno));
    notify->has_failed = true;
    return false;
}

/* ---- the environment ---- */

static bool read_address(const char *name, struct notify *notify) {
    size_t size = strlen(name);
    bool is_name = (name[0] == '/' || name[0] == '@') && size > 1;
    if (!is_name || size >= sizeof notify->address.sun_path) return false;
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, size);
    if (name[0] == '@') notify->address.sun_path[0] = 0; /* an abstract name ends without a NUL */
    notify->address_bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (name[0] == '/'));
    return true;
}

/* A number from the environment; 0: it is not set. */
static uint64_t number_of(const char *name) {
    const char *text = getenv(name);
    uint64_t ret = 0;
    return text != NULL && text[0] != 0 && number_read(text, &ret) == strlen(text) ? ret : 0;
}

/* Half of the watchdog's interval, if it applies to this process. */
static uint64_t sign_interval_ns(void) {
    uint64_t pid = number_of("WATCHDOG_PID"), whole_us = number_of("WATCHDOG_USEC");
    if (getenv("WATCHDOG_PID") != NULL && pid != (uint64_t)getpid()) return 0;
    return whole_us < UINT64_MAX / 500 ? whole_us * 500 : 0;
}

static bool open_socket(struct notify *notify) {
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return notify->fd >= 0;
}

struct notify *notify_open(void) {
    const char *name = getenv("NOTIFY_SOCKET");
    if (name == NULL || name[0] == 0) return NULL;
    struct notify *notify = calloc(1, sizeof *notify);
    if (notify == NULL) return NULL;
    notify->fd = -1;
    if (read_address(name, notify) && open_socket(notify)) {
        notify->sign_interval_ns = sign_interval_ns();
        return notify;
    }
    log_line(LOG_WARN, "NOTIFY_SOCKET is not a socket that can be used: '%s'", name);
    notify_close(notify);
    return NULL;
}

void notify_close(struct notify *notify) {
    if (notify == NULL) return;
    if (notify->fd >= 0) close(notify->fd);
    free(notify);
}

/* ---- what is told ---- */

static bool say_reloading(struct notify *notify) {
    char message[64];
    snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, notify->reload_us);
    return say(notify, message);
}

/*
 * Sends how the worker stands, if systemd has not been told. The begin and the end of a reload are
 * both sent, however late, because systemctl waits for both.
 */
static void tell_standing(struct notify *notify) {
    bool is_stopping = notify->standing == STOPPING;
    if (!is_stopping && notify->reload_us != 0 && say_reloading(notify)) {
        notify->reload_us = 0;
        notify->told = RELOADING;
    }
    if (notify->told == notify->standing || (!is_stopping && notify->reload_us != 0)) return;
    if (say(notify, is_stopping ? "STOPPING=1" : "READY=1")) notify->told = notify->standing;
}

static void stand(struct notify *notify, enum standing standing) {
    notify->standing = standing;
    tell_standing(notify);
}

void notify_ready(struct notify *notify) {
    if (notify != NULL && notify->standing == STARTING) stand(notify, READY);
}

void notify_reloading(struct notify *notify) {
    if (notify == NULL || notify->standing != READY) return;
    notify->reload_us = clock_ns() / 1000;
    stand(notify, RELOADING);
}

void notify_reloaded(struct notify *notify) {
    if (notify != NULL && notify->standing == RELOADING) stand(notify, READY);
}

void notify_stopping(struct notify *notify) {
    if (notify != NULL && notify->standing != STOPPING) stand(notify, STOPPING);
}

void notify_alive(struct notify *notify, uint64_t now_ns) {
    if (notify == NULL) return;
    tell_standing(notify);
    if (notify->sign_interval_ns == 0 || now_ns < notify->next_sign_ns) return;
    if (say(notify, "WATCHDOG=1")) notify->next_sign_ns = now_ns + notify->sign_interval_ns;
}

void notify_status(struct notify *notify, const char *format, ...) {
    char status[sizeof notify->status], message[MESSAGE_BYTES];
    if (notify == NULL) return;
    va_list args;
    va_start(args, format);
    text_vformat(status, sizeof status, format, args);
    va_end(args);
    for (char *c = status; *c != 0; c++)
        if (*c == '\n') *c = ' '; /* to systemd a new line begins another variable */
    if (strcmp(status, notify->status) == 0) return;
    snprintf(message, sizeof message, "STATUS=%s", status);
    if (say(notify, message)) memcpy(notify->status, status, sizeof status);
}
